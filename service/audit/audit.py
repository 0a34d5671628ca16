"""Who changed what: written down and read."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

import structlog
from sqlalchemy import Connection, bindparam, delete, insert, or_, select

from service.audit import store
from service.audit.model import AccountsChanged, Entry, Kind, Thing
from service.db.engine import announce
from service.db.tables.accounts import audit

log = structlog.get_logger()

KEPT_MS: Final = 400 * 24 * 3600 * 1000
"""More than a year, so that a yearly review finds the whole of it."""
_LOOKED_THROUGH: Final = 5000
"""How many entries tell which kinds of things there are to choose from."""
_INSERT: Final = insert(audit)
_NEWEST: Final = select(
    audit.c.account_id,
    audit.c.key_id,
    audit.c.user_id,
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
    announce(connection, AccountsChanged((entry.account_id,)))


def list_newest(
    connection: Connection, *, limit: int, account_id: str | None = None
) -> tuple[Entry, ...]:
    """The newest entries, newest first. Without an account: of all."""
    query = _NEWEST.limit(limit)
    if account_id is not None:
        query = query.where(audit.c.account_id == account_id)
    return tuple(_read(row) for row in connection.execute(query).mappings())


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
    return tuple(_read(row) for row in connection.execute(query).mappings())


def _read(row: Mapping[Any, Any]) -> Entry:
    return Entry(**{**row, "fields": tuple(row["fields"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which entries of an account are listed."""

    account_id: str
    limit: int
    key_id: str | None = None
    """Only by this API key. None: by whomever."""
    user_id: str | None = None
    """Only by this user. None: by whomever."""
    resource: str | None = None
    """Only of this kind. None: of each."""
    operations: tuple[str, ...] = ()
    """Only operations that begin with one of these. Empty: any."""
    before: int | None = None
    """Only entries with a smaller number, which are older. None: the newest."""


class NumberedEntry(NamedTuple):
    """An entry, and its number among all."""

    number: int
    entry: Entry


def list_page(connection: Connection, wanted: Wanted) -> tuple[NumberedEntry, ...]:
    """Entries of an account, newest first."""
    query = _NEWEST.add_columns(audit.c.id).where(audit.c.account_id == wanted.account_id)
    for column, value in (
        (audit.c.key_id, wanted.key_id),
        (audit.c.user_id, wanted.user_id),
        (audit.c.resource, wanted.resource),
    ):
        query = query if value is None else query.where(column == value)
    if wanted.operations:
        query = query.where(or_(*map(audit.c.operation.startswith, wanted.operations)))
    if wanted.before is not None:
        query = query.where(audit.c.id < wanted.before)
    found = [dict(row) for row in connection.execute(query.limit(wanted.limit)).mappings()]
    return tuple(NumberedEntry(row.pop("id"), _read(row)) for row in found)


def find_things(
    connection: Connection, account_id: str, wanted: Mapping[Kind, Collection[str]]
) -> tuple[Thing, ...]:
    """Find what there is of the things that entries are about, by kind and id."""
    return tuple(store.find_things(connection, account_id, wanted))


def list_resources(connection: Connection, account_id: str) -> tuple[str, ...]:
    """The kinds of things that were changed, by name."""
    newest = (
        select(audit.c.resource)
        .where(audit.c.account_id == account_id)
        .order_by(audit.c.id.desc())
        .limit(_LOOKED_THROUGH)
        .subquery()
    )
    found = select(newest.c.resource).distinct().order_by(newest.c.resource)
    return tuple(connection.execute(found).scalars())


def forget_old(connection: Connection, *, now_ms: int) -> int:
    """Delete entries that are too old; how many went."""
    return connection.execute(_FORGET, {"before_ms": now_ms - KEPT_MS}).rowcount


def log_entry(entry: Entry) -> None:
    """Write an entry's line into the log."""
    log.info(
        "audit.changed",
        account_id=entry.account_id,
        key_id=entry.key_id,
        user_id=entry.user_id,
        operation=entry.operation,
        resource=entry.resource,
        resource_id=entry.resource_id,
        fields=entry.fields,
        address=entry.address,
    )
