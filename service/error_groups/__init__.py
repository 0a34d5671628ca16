"""Failures of a check that are alike, told once."""
