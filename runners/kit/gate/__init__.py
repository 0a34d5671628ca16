"""The gate of one run: how its browser's connections leave this machine, and show certificates."""
