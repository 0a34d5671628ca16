"""Runs revisions on the connection that `service.db.migrate` hands over."""

from alembic import context

from service.db.tables.metadata import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
context.run_migrations()
