"""Who changed what: written down and read."""

from dataclasses import asdict
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Row, bindparam, delete, insert, select

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
    return tuple(map(_read, connection.execute(query)))


def list_of(
    connection: Connection,
    account_id: str,
    resource: tuple[str, str],
    *,
    window: tuple[int, int],
    limit: int,
) -> tuple[Entry, ...]:
    """The newest changes of one thing in a window, newest first; the window's end is exclusive.

    `resource`: its kind, spelled as in the path, and its id.
    """
    query = _NEWEST.where(
        audit.c.account_id == account_id,
        audit.c.resource == resource[0],
        audit.c.resource_id == resource[1],
        audit.c.at_ms >= window[0],
        audit.c.at_ms < window[1],
    ).limit(limit)
    return tuple(map(_read, connection.execute(query)))


def _read(row: Row[*tuple[Any, ...]]) -> Entry:
    values = row._mapping  # noqa: SLF001 - its documented face
    return Entry(**{**values, "fields": tuple(values["fields"])})


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
