"""HTTP: one exchange on libcurl, its redirects, and all that can be seen of them."""
