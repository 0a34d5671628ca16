"""Certificates that runs show to hosts that ask for them."""
