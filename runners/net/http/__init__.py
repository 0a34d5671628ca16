"""One HTTP exchange by libcurl, with all that can be seen of it."""
