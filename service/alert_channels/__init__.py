"""Where alerts are sent, and the sending."""
