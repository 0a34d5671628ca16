"""The proxy of a run's browser: egress rules and client certificates."""
