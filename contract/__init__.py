"""The language that agent and service share."""
