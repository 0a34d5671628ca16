"""TLS as a client: what was agreed on, what certificates say, and what went wrong, in words."""
