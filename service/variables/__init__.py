"""Variables and secrets of accounts, groups and checks."""
