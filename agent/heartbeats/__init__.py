"""Pings of HEARTBEAT checks that this agent receives."""
