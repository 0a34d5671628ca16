"""DNS: questions to one server, and names to addresses."""
