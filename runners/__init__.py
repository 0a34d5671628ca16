"""How to look at a target: one file per check type."""
