"""The schema and the way to it."""
