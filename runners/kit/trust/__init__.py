"""The roots that scripts and browsers trust at this location."""
