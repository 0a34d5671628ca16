"""What became of each run."""
