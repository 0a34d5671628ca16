"""Code that several checks share."""
