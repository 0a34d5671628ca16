"""SQL of the audit log."""

from dataclasses import asdict
from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select

from service.audit.model import Entry
from service.db.tables.accounts import audit

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


def add(connection: Connection, entry: Entry) -> None:
    """Store an entry."""
    connection.execute(_INSERT, {**asdict(entry), "fields": list(entry.fields)})


def newest(connection: Connection, *, limit: int, account_id: str | None) -> tuple[Entry, ...]:
    """The newest entries, newest first; None: of all accounts."""
    query = _NEWEST.limit(limit)
    if account_id is not None:
        query = query.where(audit.c.account_id == account_id)
    found = (row._mapping for row in connection.execute(query))  # noqa: SLF001 - its documented face
    return tuple(Entry(**{**row, "fields": tuple(row["fields"])}) for row in found)


def forget(connection: Connection, *, before_ms: int) -> int:
    """Delete old entries; how many went."""
    return connection.execute(_FORGET, {"before_ms": before_ms}).rowcount
