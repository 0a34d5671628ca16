"""Runs on demand, and waiting for their end."""
