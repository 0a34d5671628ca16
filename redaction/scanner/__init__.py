"""A second, independent search for secrets that are left."""
