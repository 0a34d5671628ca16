"""Code of Playwright suites, by content hash."""
