"""Bringing a database to the newest schema; Alembic is imported only to migrate an older one."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog
from sqlalchemy import Connection, inspect, text

from service.db.partitions import days
from service.db.tables.metadata import metadata

if TYPE_CHECKING:
    from alembic.config import Config

log = structlog.get_logger()

HEAD: Final = "0044"
"""The newest revision; a test holds it equal to the newest file of `migrations/versions`."""
UNFINISHED: Final = "unfinished"
"""Stands for the revision while `migrate-store` copies rows into the database."""
SCRIPTS: Final = Path(__file__).parent / "migrations"
_REVISION: Final = text("SELECT version_num FROM alembic_version")
# As Alembic itself makes it.
_REVISIONS: Final = text(
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL,"
    " CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)
_NO_TIME_OUT: Final = text("SET LOCAL statement_timeout = 0")
"""A change of a large table takes longer than any other statement may."""
_FINISHED: Final = text("UPDATE alembic_version SET version_num = :revision")
_REACHED: Final = text("INSERT INTO alembic_version (version_num) VALUES (:revision)")


class NewerSchemaError(Exception):
    """The database was used by a newer service."""


def migrate(connection: Connection) -> bool:
    """Make or upgrade the schema inside the caller's transaction. False: nothing was due.

    Raises:
        NewerSchemaError: it is of a revision that this service does not know.
    """
    before = revision_of(connection)
    if before == HEAD:
        return False
    if before == UNFINISHED:
        raise NewerSchemaError("migrate-store has not finished this database; run it again.")
    if inspect(connection).get_table_names():
        upgrade(connection, before)
    else:
        _create(connection)
    log.info("database.migrated", before=before, now=HEAD)
    return True


def revision_of(connection: Connection) -> str | None:
    """The revision that the database is at. None: it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(_REVISION).scalar_one_or_none()
    return revision


def create_unfinished(connection: Connection) -> None:
    """Make the newest schema in an empty database; services refuse it until `finish`."""
    _create(connection, UNFINISHED)


def finish(connection: Connection) -> None:
    """Let services use a database that `create_unfinished` made."""
    connection.execute(_FINISHED, {"revision": HEAD})


def _create(connection: Connection, revision: str = HEAD) -> None:
    """Into an empty database, at once what all revisions make together."""
    metadata.create_all(connection)
    days.partition(connection)
    connection.execute(_REVISIONS)
    connection.execute(_REACHED, {"revision": revision})


def upgrade(connection: Connection, before: str | None) -> None:
    """Carry out each revision that came after `before`; all of them when that is None.

    Raises:
        NewerSchemaError: `before` is a revision that this service does not know.
    """
    # Costs 0.3 s of CPU, which most starts need not spend.
    from alembic import command  # noqa: PLC0415

    config = _config()
    config.attributes["connection"] = connection
    if before is not None and before not in known_revisions():
        raise NewerSchemaError(
            f"The database has revision {before}, which this version does not know; use the "
            f"version that made it, or a newer one."
        )
    if connection.dialect.name == "postgresql":
        connection.execute(_NO_TIME_OUT)
    command.upgrade(config, "head")


def known_revisions() -> frozenset[str]:
    """Every revision from which this service can upgrade a database, and the newest."""
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - the reason stands above

    scripts = ScriptDirectory.from_config(_config()).walk_revisions()
    return frozenset(script.revision for script in scripts)


def _config() -> "Config":
    from alembic.config import Config  # noqa: PLC0415 - the reason stands above

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    return config
