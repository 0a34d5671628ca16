"""How the schema came to be what it is, one revision per change."""
