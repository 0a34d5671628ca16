"""SQL of checks as members of groups, and of what checks come to there."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection, Select, and_, bindparam, select, update

from service.checks.model import CheckName, CheckRow
from service.checks.store import COLUMNS, NAME_COLUMNS, read, read_name
from service.db.tables.checks import check_

_ORDER: Final = check_.c.doc["groupOrder"].as_float()
_IS_MEMBER: Final = and_(
    check_.c.account_id == bindparam("account_id"), check_.c.group_id == bindparam("of_group")
)
_IN_ORDER: Final = (_ORDER.is_(None), _ORDER, check_.c.created_ms, check_.c.id)
_MEMBERS: Final[Select[Any]] = select(*COLUMNS).where(_IS_MEMBER).order_by(*_IN_ORDER)
_NAMES: Final[Select[Any]] = select(*NAME_COLUMNS).where(_IS_MEMBER).order_by(*_IN_ORDER)
_SPECS_OF_GROUP: Final = select(check_.c.id, check_.c.spec).where(
    check_.c.group_id == bindparam("of_group")
)


def members(
    connection: Connection,
    account_id: str,
    group_id: int,
    *,
    limit: int | None = None,
    offset: int = 0,
) -> tuple[CheckRow, ...]:
    """The checks of a group, in the order in which the group runs them."""
    query = _MEMBERS if limit is None else _MEMBERS.limit(limit).offset(offset)
    rows = connection.execute(query, {"account_id": account_id, "of_group": group_id})
    return tuple(map(read, rows))


def names(connection: Connection, account_id: str, group_id: int) -> tuple[CheckName, ...]:
    """The same, all of them, without what they hold."""
    rows = connection.execute(_NAMES, {"account_id": account_id, "of_group": group_id})
    return tuple(map(read_name, rows))


def specs_of_group(connection: Connection, group_id: int) -> dict[str, bytes]:
    """What runs of a group's checks need, by check."""
    rows = connection.execute(_SPECS_OF_GROUP, {"of_group": group_id})
    return {row.id: row.spec for row in rows}


def put_effects(connection: Connection, effects: Mapping[str, Mapping[str, Any]]) -> None:
    """Change what checks come to, by check, without changing the checks; all the same columns."""
    rows = [{**values, "changed": check_id} for check_id, values in effects.items()]
    if rows:
        connection.execute(update(check_).where(check_.c.id == bindparam("changed")), rows)
