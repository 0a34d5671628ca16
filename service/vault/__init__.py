"""Values that are encrypted at rest."""
