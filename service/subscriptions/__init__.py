"""People who are told of incidents by mail."""
