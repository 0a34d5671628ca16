"""Locations: who runs checks there, and the commands that start an agent."""
