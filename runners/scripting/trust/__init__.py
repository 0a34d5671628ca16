"""Further roots that scripts and browsers trust."""
