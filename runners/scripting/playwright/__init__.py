"""One script in Playwright: its run, its reports, its verdict."""
