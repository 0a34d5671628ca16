"""Copies of final results in a second store, for analytics over more than the database keeps."""
