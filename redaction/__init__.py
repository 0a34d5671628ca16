"""Hides secrets in whatever leaves the agent, and checks that none is left."""
