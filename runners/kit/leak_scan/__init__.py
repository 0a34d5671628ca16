"""Reads what is to leave the agent by decoding it, and tells where a secret is left."""
