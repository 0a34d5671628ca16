"""What happens to services: incidents and their updates."""
