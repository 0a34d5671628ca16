"""The page of one result: what a run saw, compared with the last good one, and its files."""
