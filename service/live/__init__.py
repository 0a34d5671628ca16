"""Telling open pages that something has changed."""
