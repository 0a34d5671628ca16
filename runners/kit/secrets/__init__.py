"""Secrets: which there are, every form in which they turn up, and how they are hidden."""
