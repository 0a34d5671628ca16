"""People who sign in to the pages: names, roles and passwords."""
