"""Deploys the resources of files, and says what changed."""
