"""Pings."""
