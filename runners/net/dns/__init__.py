"""DNS: one question to one server, and names resolved."""
