"""Pages for whoever is not signed in yet."""
