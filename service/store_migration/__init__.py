"""Moving an installation's database between SQLite and PostgreSQL."""
