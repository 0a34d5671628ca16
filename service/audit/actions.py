"""Noting changes, each in the transaction of the change itself."""

from typing import Final

import structlog
from sqlalchemy import Connection

from service.audit import store
from service.audit.model import Entry
from service.db.engine import announce

log = structlog.get_logger()

KEPT_MS: Final = 400 * 24 * 3600 * 1000
"""More than a year, so that a yearly review finds the whole of it."""


def note(connection: Connection, entry: Entry) -> None:
    """Keep an entry, and tell the log of it once the change is committed."""
    store.add(connection, entry)
    announce(connection, entry)


def newest(
    connection: Connection, *, limit: int, account_id: str | None = None
) -> tuple[Entry, ...]:
    """The newest entries, newest first. Without an account: of all."""
    return store.newest(connection, limit=limit, account_id=account_id)


def forget_old(connection: Connection, *, now_ms: int) -> int:
    """Delete entries that are too old; how many went."""
    return store.forget(connection, before_ms=now_ms - KEPT_MS)


def tell(entry: Entry) -> None:
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
