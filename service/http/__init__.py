"""What every route of the public API shares."""
