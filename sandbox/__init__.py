"""Runs programs that nobody trusts, and leaves nothing of them behind."""
