"""People who are notified of incidents by mail."""
