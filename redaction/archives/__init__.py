"""Hides secrets in archives and the files that they hold."""
