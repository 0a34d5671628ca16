"""Which addresses may be looked at."""
