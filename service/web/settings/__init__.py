"""The account: who may do what, and who did what."""
