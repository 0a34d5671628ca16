"""Jobs: claimed, dispatched, run, renewed, released."""
