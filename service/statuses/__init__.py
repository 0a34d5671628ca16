"""How each check stands by its newest result."""
