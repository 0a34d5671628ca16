"""The messages and types that agent and service share."""
