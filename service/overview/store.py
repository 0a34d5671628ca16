"""SQL over all checks of an account: how each stands, and which are shown.

The states of all checks are worked out for each page: 10,000 take 20 ms, and there is nothing to
keep up to date.
"""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    String,
    and_,
    bindparam,
    case,
    cast,
    exists,
    func,
    literal,
    null,
    or_,
    select,
    union,
)

from contract.checks import CheckType
from service.db.tables.alerting import alert_state
from service.db.tables.checks import (
    check_,
    check_group,
    check_group_tag,
    check_location,
    check_state,
    check_tag,
    heartbeat,
)
from service.db.tables.locations import agent, private_location
from service.overview.model import (
    CheckState,
    Grouping,
    OverviewRow,
    QuietLocation,
    StateCounts,
    Wanted,
)

_LATE_PERIODS: Final = 3
_PATIENCE_MS: Final = 120_000
"""A check is missed when nobody has looked for so many periods, and so long besides."""
_STATES: Final = tuple(CheckState)
_TROUBLES: Final = 3
_NOW: Final = bindparam("now_ms", type_=BigInteger)
_LOOKED_MS: Final = func.coalesce(check_state.c.result_ms, 0)
_CHANGED_MS: Final = func.coalesce(check_.c.updated_ms, check_.c.created_ms)
_TOUCHED_MS: Final = case((_LOOKED_MS > _CHANGED_MS, _LOOKED_MS), else_=_CHANGED_MS)
"""When somebody looked, or the check was changed: one that was resumed is not late at once."""
_PERIOD_MS: Final = case(
    (check_.c.frequency > 0, check_.c.frequency * 60_000),
    else_=func.coalesce(check_.c.frequency_offset, 0) * 1_000,
)
_IS_LATE: Final = _TOUCHED_MS + _LATE_PERIODS * _PERIOD_MS + _PATIENCE_MS < _NOW


_WAITS: Final = and_(
    check_.c.type == CheckType.HEARTBEAT.value,
    exists().where(heartbeat.c.check_id == check_.c.id, heartbeat.c.timer_started_ms.is_(None)),
)
"""A heartbeat is not looked at before its first ping."""


def _place(state: CheckState) -> ColumnElement[int]:
    return literal(_STATES.index(state), Integer, literal_execute=True)


_STATE: Final = case(
    (~check_.c.activated, _place(CheckState.PAUSED)),
    (alert_state.c.level == "FAILING", _place(CheckState.FAILING)),
    (alert_state.c.level == "DEGRADED", _place(CheckState.DEGRADED)),
    (_WAITS, _place(CheckState.UNKNOWN)),
    (_IS_LATE, _place(CheckState.MISSED)),
    (check_state.c.result_ms.is_(None), _place(CheckState.UNKNOWN)),
    else_=_place(CheckState.PASSING),
)
"""The position of the state in `CheckState`."""
_SINCE: Final = case(
    (~check_.c.activated, null()),
    (alert_state.c.level.in_(("FAILING", "DEGRADED")), alert_state.c.since_ms),
    (and_(_IS_LATE, ~_WAITS), _TOUCHED_MS),
)
_ALL: Final = check_.outerjoin(check_state, check_state.c.check_id == check_.c.id).outerjoin(
    alert_state, alert_state.c.check_id == check_.c.id
)
_OWN: Final = check_.c.account_id == bindparam("account_id")
_COUNTS: Final = (
    select(_STATE, func.count(), func.sum(cast(check_.c.muted, Integer)))
    .select_from(_ALL)
    .where(_OWN)
    .group_by(_STATE)
)
_HEADINGS: Final[dict[Grouping | None, ColumnElement[str]]] = {
    None: literal("", String),
    Grouping.GROUP: func.coalesce(cast(check_.c.group_id, String), ""),
    Grouping.TYPE: check_.c.type,
    Grouping.STATUS: cast(_STATE, String),
}
_TAGS: Final = (
    union(
        select(check_tag.c.tag).join(check_, check_.c.id == check_tag.c.check_id).where(_OWN),
        select(check_group_tag.c.tag)
        .join(check_group, check_group.c.id == check_group_tag.c.group_id)
        .where(check_group.c.account_id == bindparam("account_id")),
    )
    .order_by("tag")
    .limit(bindparam("most"))
)
_TAGS_OF: Final = select(check_tag.c.check_id, check_tag.c.tag).where(
    check_tag.c.check_id.in_(bindparam("check_ids", expanding=True))
)
_QUIET: Final = (
    select(
        private_location.c.slug_name,
        private_location.c.name,
        select(func.max(agent.c.last_seen_ms))
        .where(agent.c.location_id == private_location.c.id)
        .scalar_subquery()
        .label("last_seen_ms"),
    )
    .where(
        private_location.c.account_id == bindparam("account_id"),
        exists().where(
            check_location.c.location_id == private_location.c.id,
            check_.c.id == check_location.c.check_id,
            check_.c.activated,
        ),
    )
    .order_by(private_location.c.name)
)


def count_states(connection: Connection, account_id: str, *, now_ms: int) -> StateCounts:
    """How many checks are in each state, and how many are muted."""
    asked = {"account_id": account_id, "now_ms": now_ms}
    found = connection.execute(_COUNTS, asked).all()
    by_state = {_STATES[place]: number for place, number, _ in found}
    return StateCounts(by_state, muted=sum(muted for _, _, muted in found))


def find_state(
    connection: Connection, check_id: str, *, now_ms: int
) -> tuple[CheckState, int | None]:
    """How a check stands, and since when. None: nobody knows."""
    found = select(_STATE, _SINCE).select_from(_ALL).where(check_.c.id == check_id)
    place, since_ms = connection.execute(found, {"now_ms": now_ms}).one()
    return _STATES[place], since_ms


def list_rows(
    connection: Connection,
    account_id: str,
    wanted: Wanted,
    *,
    now_ms: int,
    page: tuple[int, int],
) -> list[OverviewRow]:
    """Checks in the order of the overview; the page is a limit and an offset."""
    rank = case((_STATE < _TROUBLES, _STATE), else_=_TROUBLES)
    heading = _HEADINGS[wanted.grouping]
    first: list[ColumnElement[Any]] = []
    if wanted.grouping is not None:
        # Whatever holds the worst comes first.
        first = [func.min(rank).over(partition_by=heading), heading]
    query = (
        select(
            check_.c.id,
            check_.c.name,
            check_.c.type,
            _STATE,
            _SINCE,
            check_.c.muted,
            check_.c.group_id,
            alert_state.c.result_id,
            check_.c.run_parallel,
            _PERIOD_MS,
            check_.c.created_ms,
            heading,
        )
        .select_from(_ALL)
        .where(_OWN, *_conditions(wanted))
        .order_by(*first, rank, func.lower(check_.c.name), check_.c.id)
        .limit(page[0])
        .offset(page[1])
    )
    found = connection.execute(query, {"account_id": account_id, "now_ms": now_ms})
    return [
        OverviewRow._make(
            (
                *row[:2],
                CheckType(row[2]),
                _STATES[row[3]],
                *row[4:11],
                _read_heading(wanted, row[11]),
            )
        )
        for row in found
    ]


def _read_heading(wanted: Wanted, heading: str) -> str:
    return _STATES[int(heading)] if wanted.grouping is Grouping.STATUS else heading


def count_headings(
    connection: Connection, account_id: str, wanted: Wanted, *, now_ms: int
) -> dict[str, dict[CheckState, int]]:
    """How many of the shown checks stand how under each heading."""
    heading = _HEADINGS[wanted.grouping]
    query = (
        select(heading, _STATE, func.count())
        .select_from(_ALL)
        .where(_OWN, *_conditions(wanted))
        .group_by(heading, _STATE)
    )
    found: dict[str, dict[CheckState, int]] = {}
    for name, place, number in connection.execute(
        query, {"account_id": account_id, "now_ms": now_ms}
    ):
        found.setdefault(_read_heading(wanted, name), {})[_STATES[place]] = number
    return found


def list_tags(connection: Connection, account_id: str, *, most: int) -> list[str]:
    """The first tags of the account's checks and groups, in the order of the alphabet."""
    return list(connection.execute(_TAGS, {"account_id": account_id, "most": most}).scalars())


def find_tags(connection: Connection, check_ids: Sequence[str]) -> dict[str, list[str]]:
    """The own tags of checks, by check; one without any is left out."""
    found: dict[str, list[str]] = {}
    for check_id, tag in connection.execute(_TAGS_OF, {"check_ids": check_ids}):
        found.setdefault(check_id, []).append(tag)
    return found


def list_used_locations(connection: Connection, account_id: str) -> list[QuietLocation]:
    """The locations where an activated check runs, and when an agent was last heard of."""
    rows = connection.execute(_QUIET, {"account_id": account_id})
    return [QuietLocation._make(row) for row in rows]


def _conditions(wanted: Wanted) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.search:
        is_part = (
            check_.c.name.icontains(wanted.search, autoescape=True),
            *_has_part(wanted.search),
        )
        found.append(or_(*is_part))
    if wanted.state is not None:
        found.append(literal(_STATES.index(wanted.state), Integer) == _STATE)
    if wanted.is_muted:
        found.append(check_.c.muted)
    if wanted.kind is not None:
        found.append(check_.c.type == wanted.kind.value)
    found += [
        or_(*_has_tag(check_tag.c.tag == tag, check_group_tag.c.tag == tag)) for tag in wanted.tags
    ]
    if wanted.any_of_tags is not None:
        among = wanted.any_of_tags
        found.append(or_(*_has_tag(check_tag.c.tag.in_(among), check_group_tag.c.tag.in_(among))))
    if wanted.group_id is not None:
        found.append(check_.c.group_id == wanted.group_id)
    if wanted.location:
        found.append(_runs_at(wanted.location))
    return found


def _has_part(text: str) -> tuple[ColumnElement[bool], ...]:
    return _has_tag(
        check_tag.c.tag.icontains(text, autoescape=True),
        check_group_tag.c.tag.icontains(text, autoescape=True),
    )


def _has_tag(
    own: ColumnElement[bool], of_group: ColumnElement[bool]
) -> tuple[ColumnElement[bool], ...]:
    return (
        exists().where(check_tag.c.check_id == check_.c.id, own),
        exists().where(check_group_tag.c.group_id == check_.c.group_id, of_group),
    )


def _runs_at(slug: str) -> ColumnElement[bool]:
    return exists().where(
        check_location.c.check_id == check_.c.id,
        private_location.c.id == check_location.c.location_id,
        private_location.c.slug_name == slug,
        private_location.c.account_id == check_.c.account_id,
    )
