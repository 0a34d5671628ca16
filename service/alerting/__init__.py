"""When results become alerts, and what an alert says."""
