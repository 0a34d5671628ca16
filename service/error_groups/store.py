"""SQL of error groups."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import (
    BindParameter,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    case,
    delete,
    false,
    insert,
    not_,
    select,
    update,
)

from service.db.ids import new_id
from service.db.tables.error_groups import error_group
from service.error_groups.model import MOST_OF_CHECK, ErrorGroup, Occurrence

_COLUMNS: Final = (
    error_group.c.id,
    error_group.c.check_id,
    error_group.c.error_hash,
    error_group.c.raw,
    error_group.c.cleaned,
    error_group.c.first_seen_ms,
    error_group.c.last_seen_ms,
    error_group.c.archived_until_next,
    error_group.c.archived_forever,
)
_OF_ACCOUNT: Final = error_group.c.account_id == bindparam("account")
_NEWEST_FIRST: Final = (error_group.c.last_seen_ms.desc(), error_group.c.id.desc())
_IS_LISTED: Final = and_(
    error_group.c.archived_until_next == false(), error_group.c.archived_forever == false()
)
_ALL: Final[Select[Any]] = select(*_COLUMNS).where(_OF_ACCOUNT).order_by(*_NEWEST_FIRST)
_LISTED: Final = _ALL.where(_IS_LISTED)
_ARCHIVED: Final = _ALL.where(not_(_IS_LISTED), error_group.c.check_id == bindparam("of_check"))
_ONE: Final[Select[Any]] = select(*_COLUMNS).where(
    _OF_ACCOUNT, error_group.c.id == bindparam("group_id")
)
_SEEN: Final[BindParameter[int]] = bindparam("seen_ms")
_IS_NEWEST: Final = error_group.c.last_seen_ms <= _SEEN
_SEE_AGAIN: Final = (
    update(error_group)
    .where(
        error_group.c.check_id == bindparam("of_check"),
        error_group.c.error_hash == bindparam("of_hash"),
    )
    .values(
        raw=case((_IS_NEWEST, bindparam("new_raw")), else_=error_group.c.raw),
        first_seen_ms=case(
            (error_group.c.first_seen_ms > _SEEN, _SEEN), else_=error_group.c.first_seen_ms
        ),
        last_seen_ms=case((_IS_NEWEST, _SEEN), else_=error_group.c.last_seen_ms),
        archived_until_next=False,
    )
)
_FORGET: Final = delete(error_group).where(
    error_group.c.id.in_(
        select(error_group.c.id)
        .where(error_group.c.check_id == bindparam("of_check"))
        .order_by(*_NEWEST_FIRST)
        .offset(MOST_OF_CHECK)
    )
)


def see_again(connection: Connection, one: Occurrence) -> bool:
    """Note that a group occurred. False: the check has no such group."""
    values = {
        "of_check": one.check_id,
        "of_hash": one.error_hash,
        "seen_ms": one.seen_ms,
        "new_raw": one.raw,
    }
    return connection.execute(_SEE_AGAIN, values).rowcount > 0


def add(connection: Connection, account_id: str, one: Occurrence) -> None:
    """Make the group of a failure, and forget those that are too many for its check."""
    row = {
        "id": new_id(one.seen_ms),
        "account_id": account_id,
        "check_id": one.check_id,
        "error_hash": one.error_hash,
        "raw": one.raw,
        "cleaned": one.cleaned,
        "first_seen_ms": one.seen_ms,
        "last_seen_ms": one.seen_ms,
        "archived_until_next": False,
        "archived_forever": False,
    }
    connection.execute(insert(error_group), row)
    connection.execute(_FORGET, {"of_check": one.check_id})


def list_page(
    connection: Connection, account_id: str, *, check_id: str | None, limit: int, offset: int
) -> tuple[ErrorGroup, ...]:
    """A page of the groups that are not archived, seen last first. No check: of all checks."""
    query = _LISTED if check_id is None else _LISTED.where(error_group.c.check_id == check_id)
    rows = connection.execute(query.limit(limit).offset(offset), {"account": account_id})
    return tuple(map(_read, rows))


def list_archived(
    connection: Connection, account_id: str, check_id: str, *, limit: int
) -> tuple[ErrorGroup, ...]:
    """The archived groups of a check, seen last first."""
    asked = {"account": account_id, "of_check": check_id}
    return tuple(map(_read, connection.execute(_ARCHIVED.limit(limit), asked)))


def find(connection: Connection, account_id: str, group_id: str) -> ErrorGroup | None:
    """One group, archived or not. None: the account has none with this id."""
    row = connection.execute(_ONE, {"account": account_id, "group_id": group_id}).first()
    return None if row is None else _read(row)


def change(connection: Connection, group_id: str, values: Mapping[str, bool]) -> None:
    """Set whether a group is archived."""
    connection.execute(update(error_group).where(error_group.c.id == group_id).values(**values))


def _read(row: Row[Any]) -> ErrorGroup:
    return ErrorGroup(**row._mapping)  # noqa: SLF001 - SQLAlchemy's documented face of a row
