"""Projects: checks and all that belongs to them, deployed from code as one unit."""
