"""Tables that have a partition for each day on PostgreSQL."""
