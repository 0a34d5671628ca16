"""Hides secrets in Playwright's traces."""
