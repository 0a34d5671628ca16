"""How all checks of an account stand, at one glance."""
