"""Where checks run from."""
