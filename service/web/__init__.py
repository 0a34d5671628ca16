"""Pages for people: rendered here, and usable without a script where they only show things."""
