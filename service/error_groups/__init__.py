"""Failures of a check that are alike, listed once."""
