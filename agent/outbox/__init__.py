"""What waits to be sent: results, artifacts."""
