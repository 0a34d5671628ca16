"""Alerts as people see them."""
