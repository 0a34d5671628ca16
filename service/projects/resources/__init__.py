"""What a project may consist of: how each type is made, changed, compared and deleted."""
