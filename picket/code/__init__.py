"""Checks as code: files that become what a service has, and the reverse."""
