"""How many requests a client may send."""
