"""Bringing a database to the newest schema; Alembic is imported only when there is work."""

from pathlib import Path
from typing import Final

import structlog
from sqlalchemy import Connection, inspect, text

log = structlog.get_logger()

HEAD: Final = "0009"
"""The newest revision; a test holds it equal to the newest file of `migrations/versions`."""
SCRIPTS: Final = Path(__file__).parent / "migrations"
_REVISION: Final = text("SELECT version_num FROM alembic_version")


class NewerSchemaError(Exception):
    """The database was used by a newer service."""


def migrate(connection: Connection) -> bool:
    """Upgrade the schema inside the caller's transaction. False: nothing was due.

    Raises:
        NewerSchemaError: it is of a revision that this service does not know.
    """
    before = revision_of(connection)
    if before == HEAD:
        return False
    _upgrade(connection, before)
    log.info("database.migrated", before=before, now=HEAD)
    return True


def revision_of(connection: Connection) -> str | None:
    """The revision that the database is at. None: it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(_REVISION).scalar_one_or_none()
    return revision


def _upgrade(connection: Connection, before: str | None) -> None:
    # Costs 0.4 s of CPU, which most starts need not spend.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if before is not None and before not in known:
        raise NewerSchemaError(
            f"The database is of revision {before}, which this version does not know; use the "
            f"version that made it, or a newer one."
        )
    command.upgrade(config, "head")
