"""Playwright's trace viewer, on an origin of its own: it shows pages that a target controlled."""
