"""A whole Playwright project: its code, packages, run and report."""
