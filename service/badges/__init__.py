"""A check's status as a small picture."""
