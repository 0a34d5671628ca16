"""How the due times of a window ended, counted.

A row of what was missed while the service was away stands for many due times, and may have begun
before a window, or end after it.
"""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Connection,
    ScalarSelect,
    Select,
    bindparam,
    func,
    literal_column,
    select,
)

from service.db.tables.checks import check_
from service.db.tables.runs import result
from service.results.model import Cause, ResultType, RunStatus

_STATUSES: Final = {status.value: status for status in RunStatus}
_LATEST_MS: Final = 2**53
_OUTCOMES: Final[Select[Any]] = (
    select(result.c.status, result.c.cause, func.count())
    .where(
        result.c.check_id == bindparam("check_id"),
        result.c.ts >= bindparam("from_ms"),
        result.c.ts < bindparam("to_ms"),
        result.c.result_type == ResultType.FINAL.value,
        result.c.due_times.is_(None),
    )
    .group_by(result.c.status, result.c.cause)
)
began: Final = result.c.ts + 0
"""No column: else SQLite reads all of a check's past by its key, and not the few outages."""
_OUTAGES: Final[Select[Any]] = select(
    result.c.status, result.c.cause, result.c.ts, result.c.stopped_ms, result.c.due_times
).where(
    result.c.check_id == bindparam("check_id"),
    result.c.stopped_ms >= bindparam("from_ms"),
    began < bindparam("to_ms"),
    result.c.result_type == ResultType.FINAL.value,
    result.c.due_times.is_not(None),
)
_IS_DEGRADED: Final = result.c.status == literal_column(f"'{RunStatus.DEGRADED.value}'")
"""SQLite uses an index of some rows only where the query spells its condition."""


def _first_degraded(check_id: Any, from_ms: Any) -> ScalarSelect[int]:
    return (
        select(func.min(result.c.ts))
        .where(
            result.c.check_id == check_id,
            result.c.ts >= from_ms,
            result.c.ts < bindparam("to_ms"),
            _IS_DEGRADED,
            result.c.result_type == ResultType.FINAL.value,
        )
        .scalar_subquery()
    )


_DEGRADED: Final = (
    select(
        check_.c.id.label("check_id"),
        _first_degraded(check_.c.id, bindparam("from_ms")).label("ts"),
    )
    .where(check_.c.id.in_(bindparam("check_ids", expanding=True)))
    .cte("degraded", recursive=True)
)
_STEP_MS: Final = bindparam("step_ms", type_=BigInteger)
_NEXT_MS: Final = _DEGRADED.c.ts - (_DEGRADED.c.ts - bindparam("from_ms")) % _STEP_MS + _STEP_MS
_ALL_DEGRADED: Final = _DEGRADED.union_all(
    select(_DEGRADED.c.check_id, _first_degraded(_DEGRADED.c.check_id, _NEXT_MS)).where(
        _DEGRADED.c.ts.is_not(None)
    )
)
_IN_BUCKETS: Final = select(_ALL_DEGRADED).where(_ALL_DEGRADED.c.ts.is_not(None))
"""The first of each bucket, and from there on the first of the next one that has any."""


def find_degraded(
    connection: Connection, check_ids: Sequence[str], *, window: tuple[int, int], step_ms: int
) -> dict[str, list[int]]:
    """When the first degraded run of each bucket began that has one, by check."""
    asked = {"from_ms": window[0], "to_ms": window[1], "step_ms": step_ms}
    found: dict[str, list[int]] = {}
    for check_id, ts in connection.execute(_IN_BUCKETS, {**asked, "check_ids": check_ids}):
        found.setdefault(check_id, []).append(ts)
    return found


def count_due(first_ms: int, last_ms: int, due_times: int, *, window: tuple[int, int]) -> int:
    """How many due times of a row that stands for many, evenly spread, lie in a window."""
    step_ms = max((last_ms - first_ms) // max(due_times - 1, 1), 1)
    before = min(max(-((first_ms - window[0]) // step_ms), 0), due_times)
    after = min(max((last_ms - window[1]) // step_ms + 1, 0), due_times)
    return max(due_times - before - after, 0)


def count_causes(
    connection: Connection, account_id: str, location: str, *, from_ms: int
) -> dict[Cause, int]:
    """Why due times at a location came to nothing since a time, and how many for each cause."""
    here = (
        result.c.cause.is_not(None),
        result.c.location == location,
        result.c.result_type == ResultType.FINAL.value,
        check_.c.account_id == account_id,
    )
    of_account = check_.c.id == result.c.check_id
    single = (
        select(result.c.cause, func.count())
        .join(check_, of_account)
        .where(*here, result.c.ts >= from_ms, result.c.due_times.is_(None))
        .group_by(result.c.cause)
    )
    outages = (
        select(result.c.cause, result.c.ts, result.c.stopped_ms, result.c.due_times)
        .join(check_, of_account)
        .where(*here, result.c.stopped_ms >= from_ms, result.c.due_times.is_not(None))
    )
    found = {Cause(cause): int(count) for cause, count in connection.execute(single)}
    for cause, *outage in connection.execute(outages):
        if count := count_due(*outage, window=(from_ms, _LATEST_MS)):
            found[Cause(cause)] = found.get(Cause(cause), 0) + count
    return found


def count_outcomes(
    connection: Connection, check_id: str, *, window: tuple[int, int]
) -> dict[tuple[RunStatus, Cause | None], int]:
    """How many due times of a window ended with each status and cause."""
    asked = {"check_id": check_id, "from_ms": window[0], "to_ms": window[1]}
    rows = connection.execute(_OUTCOMES, asked)
    found = {(_STATUSES[one], Cause(why) if why else None): int(n) for one, why, n in rows}
    for status, why, *outage in connection.execute(_OUTAGES, asked):
        if count := count_due(*outage, window=window):
            ending = (_STATUSES[status], Cause(why) if why else None)
            found[ending] = found.get(ending, 0) + count
    return found
