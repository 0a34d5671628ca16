"""Results that have been kept long enough."""
