"""One script in Playwright: its run, what it tells, what is kept of it, and whom to blame."""
