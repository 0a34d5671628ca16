"""Maintenance windows: times in which checks run and nobody is alerted."""
