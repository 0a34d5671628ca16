"""Writes what a service has as files."""
