"""`picket doctor`: looks over a machine and its settings."""
