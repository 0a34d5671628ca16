"""Reads documents from files, and makes the resources of a deployment of them."""
