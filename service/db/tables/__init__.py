"""The tables, by subject: one text for SQLite and PostgreSQL."""
