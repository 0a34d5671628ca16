"""Runs the checks of files once, here or at a service."""
