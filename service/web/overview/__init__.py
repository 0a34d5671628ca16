"""Checks as a list: the overview, and what is done with those that are selected."""
