"""Installs what scripted checks run on, with nothing but the standard library."""
