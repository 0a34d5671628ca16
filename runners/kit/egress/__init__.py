"""Which addresses and names a check may reach."""
