"""How people sign in to the pages."""
