"""How the agent talks to the service."""
