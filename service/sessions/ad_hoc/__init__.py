"""Test sessions: checks that are not stored run once on the agents of a location."""
