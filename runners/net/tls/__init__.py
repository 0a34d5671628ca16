"""TLS: channels, certificates, and what went wrong in words."""
