"""How runners talk to networks."""
