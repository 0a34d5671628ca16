"""Reports: numbers of all checks of an account over a window."""
