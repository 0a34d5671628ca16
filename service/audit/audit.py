"""Who changed what: written down and read."""

from dataclasses import asdict
from typing import Final

import structlog
from sqlalchemy import Connection, bindparam, delete, insert, select

from service.audit.model import Entry
from service.db.engine import announce
from service.db.tables.accounts import audit

log = structlog.get_logger()

KEPT_MS: Final = 400 * 24 * 3600 * 1000
"""More than a year, so that a yearly review finds the whole of it."""
_INSERT: Final = insert(audit)
_NEWEST: Final = select(
    audit.c.account_id,
    audit.c.key_id,
    audit.c.operation,
    audit.c.resource,
    audit.c.resource_id,
    audit.c.fields,
    audit.c.address,
    audit.c.at_ms,
).order_by(audit.c.id.desc())
_FORGET: Final = delete(audit).where(audit.c.at_ms < bindparam("before_ms"))


def record(connection: Connection, entry: Entry) -> None:
    """Store an entry, and log it once the change is committed."""
    connection.execute(_INSERT, {**asdict(entry), "fields": list(entry.fields)})
    announce(connection, entry)


def list_newest(
    connection: Connection, *, limit: int, account_id: str | None = None
) -> tuple[Entry, ...]:
    """The newest entries, newest first. Without an account: of all."""
    query = _NEWEST.limit(limit)
    if account_id is not None:
        query = query.where(audit.c.account_id == account_id)
    found = (row._mapping for row in connection.execute(query))  # noqa: SLF001 - its documented face
    return tuple(Entry(**{**row, "fields": tuple(row["fields"])}) for row in found)


def forget_old(connection: Connection, *, now_ms: int) -> int:
    """Delete entries that are too old; how many went."""
    return connection.execute(_FORGET, {"before_ms": now_ms - KEPT_MS}).rowcount


def log_entry(entry: Entry) -> None:
    """Write an entry's line into the log."""
    log.info(
        "audit.changed",
        account_id=entry.account_id,
        key_id=entry.key_id,
        operation=entry.operation,
        resource=entry.resource,
        resource_id=entry.resource_id,
        fields=entry.fields,
        address=entry.address,
    )
