"""Public status pages as visitors see them: HTML, feeds, and copies that need no service."""
