"""SQL of checks that somebody wants to run now: few of many, so that no whole check is read."""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from sqlalchemy import JSON, BindParameter, Connection, Row, Select, bindparam, func, or_, select

from contract.checks import CheckType, Lane
from service.checks.model import CheckToRun
from service.db.tables.checks import check_, check_group_tag, check_location, check_tag

_TAGS: Final = func.coalesce(check_.c.applied, check_.c.doc, type_=JSON)["tags"]
_TO_RUN: Final[Select[Any]] = (
    select(check_.c.id, check_.c.type, check_.c.lane, check_.c.name, _TAGS.label("tags"))
    .where(check_.c.account_id == bindparam("account_id"), check_.c.activated)
    .order_by(check_.c.created_ms, check_.c.id)
)
_AMONG: Final[BindParameter[Any]] = bindparam("among", expanding=True)
_OF_IDS: Final = _TO_RUN.where(check_.c.id.in_(_AMONG))
_TAGGED: Final = _TO_RUN.where(
    or_(
        check_.c.id.in_(select(check_tag.c.check_id).where(check_tag.c.tag.in_(_AMONG))),
        check_.c.group_id.in_(
            select(check_group_tag.c.group_id).where(check_group_tag.c.tag.in_(_AMONG))
        ),
    )
)
_LOCATIONS: Final = (
    select(check_location.c.check_id, check_location.c.location_id)
    .where(check_location.c.check_id.in_(_AMONG))
    .order_by(check_location.c.check_id, check_location.c.position)
)
_GROUP: Final = 500
"""Checks in one statement."""


def to_run(
    connection: Connection,
    account_id: str,
    *,
    check_ids: Collection[str] | None,
    any_of_tags: Collection[str] | None,
) -> Iterator[CheckToRun]:
    """Activated checks, oldest first: those with these ids or, of any ids, with one of these tags.

    None: any.
    """
    if check_ids is not None:
        query, among = _OF_IDS, {"among": list(check_ids)}
    elif any_of_tags is not None:
        query, among = _TAGGED, {"among": list(any_of_tags)}
    else:
        query, among = _TO_RUN, {}
    return map(_read, connection.execute(query, {"account_id": account_id, **among}))


def locations_of_some(connection: Connection, check_ids: Iterable[str]) -> dict[str, list[str]]:
    """The ids of the locations where each of these checks runs, in order."""
    left, found = iter(check_ids), dict[str, list[str]]()
    while some := list(islice(left, _GROUP)):
        for check_id, location_id in connection.execute(_LOCATIONS, {"among": some}):
            found.setdefault(check_id, []).append(location_id)
    return found


def _read(row: Row[Any]) -> CheckToRun:
    return CheckToRun(
        id=row.id,
        type=CheckType(row.type),
        lane=Lane(row.lane),
        name=row.name,
        tags=frozenset(row.tags),
    )
