"""Groups of checks, and the settings that their checks share."""
