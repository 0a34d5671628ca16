"""How scripts, Playwright and whole suites run."""
