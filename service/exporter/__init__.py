"""How checks and locations stand, for Prometheus."""
