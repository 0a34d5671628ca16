"""Links that run a check without an API key."""
