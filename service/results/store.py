"""SQL that reads results."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

import msgspec
import structlog
from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    true,
)

from contract.checks import CheckType
from contract.result import Result
from contract.wire import UnreadableMessageError, decode
from service.db.ids import time_of
from service.db.tables.checks import check_, check_state
from service.db.tables.runs import result, result_detail, run_final
from service.results.model import (
    Cause,
    Extremes,
    FinalRun,
    Finished,
    ResultFilter,
    ResultType,
    RunStatus,
    Standing,
    StoredResult,
)
from service.results.outcomes import began

log = structlog.get_logger()

TYPES_WITH_TLS: Final = tuple(
    one.value for one in (CheckType.API, CheckType.BROWSER, CheckType.TCP, CheckType.URL)
)
"""The check types whose results have TLS evidence."""


class _Tls(msgspec.Struct, frozen=True, rename="camel"):
    days_to_expiry: float | None = None


class _Evidence(msgspec.Struct, frozen=True):
    tls: _Tls | None = None


class _Outcome(msgspec.Struct, frozen=True):
    evidence: _Evidence | None = None


class _Result(msgspec.Struct, frozen=True):
    outcome: _Outcome


def days_to_expiry(body: bytes) -> float | None:
    """Until the first certificate of the chain runs out that the run saw; negative: it has.

    `body`: the contract's Result as JSON. None: the run saw no certificate.

    Raises:
        UnreadableMessageError: it is no Result.
    """
    evidence = decode(body, _Result).outcome.evidence
    return evidence.tls.days_to_expiry if evidence and evidence.tls else None


_FAILURES: Final = tuple(status.value for status in RunStatus if status.has_failures)
_BODY: Final = func.coalesce(run_final.c.body, result_detail.c.body)
_MOST_LISTED_BYTES: Final = 256 * 1024
"""A longer detail is left out of lists, so that a page of 100 stays below 26 MB in memory."""
# Of each column by itself: its row says how long it is, and none of it is read.
_SIZE: Final = func.coalesce(func.length(run_final.c.body), func.length(result_detail.c.body))
_IS_FINAL: Final = ResultType.FINAL.value
_HAS_BODY: Final = and_(
    run_final.c.run_id == result.c.run_id,
    run_final.c.result_ms == result.c.ts,  # tells PostgreSQL the day, and with it the partition
    result.c.result_type == _IS_FINAL,
)
_UP_TO_SIZE: Final = (
    case((_SIZE <= _MOST_LISTED_BYTES, _BODY)).label("body"),
    (_SIZE > _MOST_LISTED_BYTES).label("is_cut"),
)


def _and_detail(rows: FromClause) -> FromClause:
    return rows.outerjoin(result_detail, result_detail.c.id == result.c.id)


_WITH_BODY: Final = _and_detail(result.outerjoin(run_final, _HAS_BODY))
_WHOLE: Final = select(result, _BODY.label("body")).select_from(_WITH_BODY)
_LISTED: Final = select(result, *_UP_TO_SIZE).select_from(_WITH_BODY)
_GROUP: Final = 100
"""How many checks a query that reads details covers, which bounds its memory."""
_GROUP_OF_NUMBERS: Final = 1_000
"""How many checks a query that reads no details covers."""
_STATUSES: Final = {status.value: status for status in RunStatus}
"""To look a member up here takes a third of the time that its class takes."""
_FAILED: Final = (
    select(result.c.id, result.c.ts)
    .where(
        result.c.check_id == bindparam("check_id"),
        result.c.ts >= bindparam("from_ms"),
        result.c.ts < bindparam("to_ms"),
        result.c.result_type == _IS_FINAL,
        result.c.status.in_(_FAILURES),
    )
    .order_by(result.c.ts)
)
_EXTREMES: Final = (
    select(
        result.c.check_id,
        func.min(result.c.response_time_ms),
        func.max(result.c.response_time_ms),
    )
    .where(
        result.c.check_id.in_(bindparam("check_ids", expanding=True)),
        result.c.ts >= bindparam("from_ms"),
        result.c.result_type == _IS_FINAL,
        result.c.response_time_ms.is_not(None),
    )
    .group_by(result.c.check_id)
)
_NOT_LOOKED: Final = tuple(status.value for status in RunStatus if not status.judges_target)
_LOOKED: Final = and_(
    result.c.check_id.in_(bindparam("check_ids", expanding=True)),
    result.c.ts >= bindparam("from_ms"),
    result.c.ts < bindparam("to_ms"),
    result.c.result_type == _IS_FINAL,
    result.c.status.not_in(_NOT_LOOKED),
)
_FINISHED: Final = (
    result.c.id,
    result.c.check_id,
    result.c.ts,
    result.c.location,
    result.c.status,
    result.c.attempt,
    result.c.response_time_ms,
)
_IN_ORDER: Final = (result.c.check_id, result.c.ts, result.c.id)
_FINALS: Final[Select[Any]] = select(*_FINISHED, literal(None)).where(_LOOKED).order_by(*_IN_ORDER)
_IN_WINDOW: Final = and_(
    run_final.c.result_ms >= bindparam("from_ms"), run_final.c.result_ms < bindparam("to_ms")
)
_FINALS_WHOLE: Final[Select[Any]] = (
    select(*_FINISHED, _BODY)
    .select_from(_and_detail(result.outerjoin(run_final, and_(_HAS_BODY, _IN_WINDOW))))
    .where(_LOOKED)
    .order_by(*_IN_ORDER)
)
_ENDED: Final[Select[Any]] = (
    select(
        result.c.check_id,
        result.c.ts,
        result.c.status,
        result.c.location,
        result.c.response_time_ms,
        result.c.due_times,
        result.c.stopped_ms,
        result.c.id,
    )
    .where(
        result.c.check_id.in_(bindparam("check_ids", expanding=True)),
        result.c.result_type == _IS_FINAL,
    )
    .order_by(result.c.check_id, result.c.ts, result.c.id)
)
_ENDINGS: Final = _ENDED.where(
    result.c.ts >= bindparam("from_ms"), result.c.ts < bindparam("to_ms")
)
_BEGUN_BEFORE: Final = _ENDED.where(
    began < bindparam("from_ms"),
    result.c.stopped_ms >= bindparam("from_ms"),
    result.c.due_times.is_not(None),
).order_by(None)
_NO_PASSES: Final = _ENDINGS.where(result.c.status != RunStatus.PASSED.value)
_LISTED_BODY: Final[Select[Any]] = (
    select(case((_SIZE <= _MOST_LISTED_BYTES, _BODY)))
    .select_from(_WITH_BODY)
    .where(
        result.c.check_id == bindparam("check_id"),
        result.c.ts == bindparam("ts"),
        result.c.id == bindparam("result_id"),
    )
)
_LOOKS: Final = select(func.count()).select_from(result).where(_LOOKED)
_EARLIER: Final = result.alias("earlier")
# The primary key begins with check and time: one step for each check, however many results.
_LAST_TS: Final = (
    select(_EARLIER.c.ts)
    .where(_EARLIER.c.check_id == check_.c.id, _EARLIER.c.result_type == _IS_FINAL)
    .order_by(_EARLIER.c.ts.desc())
    .limit(1)
    .scalar_subquery()
)
_IS_LAST: Final = and_(
    result.c.check_id == check_.c.id,
    result.c.ts == _LAST_TS,
    result.c.result_type == _IS_FINAL,
)
_LAST: Final = (
    result.select()
    .where(
        result.c.check_id == check_.c.id,
        result.c.result_type == _IS_FINAL,
        # It is no older than the last one that judged the target: no partition from before is read.
        result.c.ts >= func.coalesce(check_state.c.result_ms, 0),
    )
    .order_by(result.c.ts.desc(), result.c.id.desc())
    .limit(1)
    .lateral("result")
)
_WITH_LAST: Final[Mapping[str, FromClause]] = {
    "sqlite": _and_detail(check_.join(result, _IS_LAST).outerjoin(run_final, _HAS_BODY)),
    "postgresql": check_.outerjoin(check_state, check_state.c.check_id == check_.c.id)
    .join(_LAST, true())
    .outerjoin(
        run_final,
        and_(run_final.c.run_id == _LAST.c.run_id, run_final.c.result_ms == _LAST.c.ts),
    )
    .outerjoin(result_detail, result_detail.c.id == _LAST.c.id),
}
"""Checks with their newest final results: SQLite knows no LATERAL, and in the first form PostgreSQL
reads all partitions."""
_TELLS_OF_TLS: Final = and_(check_.c.type.in_(TYPES_WITH_TLS), _SIZE <= _MOST_LISTED_BYTES)


def _select_last(body: ColumnElement[bool], *columns: str) -> Mapping[str, Select[Any]]:
    """The query of each engine: check and result, the body if the condition holds, and columns."""
    ends: Mapping[str, FromClause] = {"sqlite": result, "postgresql": _LAST}
    return {
        engine: select(
            row.c.check_id,
            row.c.id,
            case((body, _BODY)).label("body"),
            *(row.c[one] for one in columns),
        )
        .select_from(_WITH_LAST[engine])
        .where(check_.c.id.in_(bindparam("check_ids", expanding=True)))
        .order_by(row.c.id)
        for engine, row in ends.items()
    }


_STANDINGS: Final = _select_last(
    _TELLS_OF_TLS, "status", "location", "run_id", "response_time_ms", "created_ms"
)
_NEWEST: Final = _select_last(_SIZE <= _MOST_LISTED_BYTES, "created_ms", "response_time_ms")
_ONE: Final = _WHOLE.where(
    result.c.check_id == bindparam("check_id"),
    result.c.ts == bindparam("ts"),
    result.c.id == bindparam("result_id"),
)
_OF_SESSION: Final = (
    select(result)
    .where(result.c.session_id == bindparam("session_id"))
    .order_by(result.c.ts, result.c.id)
)


def of_check(
    connection: Connection, check_id: str, wanted: ResultFilter, *, limit: int, offset: int
) -> tuple[StoredResult, ...]:
    """A page of a check's results, newest first.

    Where failures come first they are asked for by themselves: the rest need not be sorted then.
    """
    if wanted.failures_first and wanted.has_failures is None:
        bad, rest = (replace(wanted, has_failures=one) for one in (True, False))
        found = _page(connection, check_id, bad, limit=limit, offset=offset)
        if len(found) == limit:
            return found
        ahead = offset + len(found) if found else _count(connection, check_id, bad)
        skipped = max(offset - ahead, 0)
        return found + _page(connection, check_id, rest, limit=limit - len(found), offset=skipped)
    return _page(connection, check_id, wanted, limit=limit, offset=offset)


def _page(
    connection: Connection, check_id: str, wanted: ResultFilter, *, limit: int, offset: int
) -> tuple[StoredResult, ...]:
    query = (
        _LISTED.where(result.c.check_id == check_id, *_conditions(wanted))
        .order_by(result.c.ts.desc(), result.c.id.desc())
        .limit(limit)
        .offset(offset)
    )
    return tuple(_read(row, row.body, is_cut=bool(row.is_cut)) for row in connection.execute(query))


def _count(connection: Connection, check_id: str, wanted: ResultFilter) -> int:
    conditions = (result.c.check_id == check_id, *_conditions(wanted))
    return connection.execute(select(func.count()).where(*conditions)).scalar_one()


def standings(connection: Connection, check_ids: Sequence[str]) -> dict[str, Standing]:
    """How each check stands that has a final result, by the newest one."""
    found: dict[str, Standing] = {}
    query = _STANDINGS[connection.dialect.name]
    for some in _in_groups(check_ids, _GROUP):
        for check_id, _, body, *rest in connection.execute(query, {"check_ids": some}):
            # The last counts of two of one millisecond, the one that lists show first.
            found[check_id] = _standing(body, *rest)
    return found


def _standing(body: bytes | None, status: str, *rest: Any) -> Standing:
    try:
        days = days_to_expiry(body) if body else None
    except UnreadableMessageError:
        days = None
    return Standing._make((_STATUSES[status], *rest, days))


def newest(connection: Connection, check_ids: Sequence[str]) -> Iterator[Row[Any]]:
    """The newest final result of each check that has one; the last counts of two of one check."""
    query = _NEWEST[connection.dialect.name]
    for some in _in_groups(check_ids, _GROUP):
        yield from connection.execute(query, {"check_ids": some})


def list_failures(
    connection: Connection, check_id: str, *, window: tuple[int, int], limit: int | None
) -> dict[str, int]:
    """When the first final results of a window that failed began, by id. No limit: all of them."""
    asked = {"check_id": check_id, "from_ms": window[0], "to_ms": window[1]}
    return {row.id: row.ts for row in connection.execute(_FAILED.limit(limit), asked)}


def list_endings(
    connection: Connection,
    check_ids: Sequence[str],
    *,
    window: tuple[int, int],
    with_passes: bool,
) -> Iterator[Sequence[Any]]:
    """How the runs of a window ended, by check, in the order of time.

    Rows that stand for many due times may have begun before.
    """
    query = _ENDINGS if with_passes else _NO_PASSES
    for some in _in_groups(check_ids, _GROUP_OF_NUMBERS):
        asked = {"check_ids": some, "from_ms": window[0], "to_ms": window[1]}
        yield from connection.execute(_BEGUN_BEFORE, {"check_ids": some, "from_ms": window[0]})
        yield from connection.execute(query, asked)


def find_body(connection: Connection, check_id: str, result_id: str) -> bytes | None:
    """What the agent sent of a result. None: nothing, or more than lists show."""
    asked = {"check_id": check_id, "ts": time_of(result_id), "result_id": result_id}
    found: bytes | None = connection.execute(_LISTED_BODY, asked).scalar()
    return found


def extremes(
    connection: Connection, check_ids: Sequence[str], *, from_ms: int
) -> dict[str, Extremes]:
    """The shortest and longest response time since `from_ms`, by check; none where nothing ran."""
    found: dict[str, Extremes] = {}
    for some in _in_groups(check_ids, _GROUP_OF_NUMBERS):
        since = {"check_ids": some, "from_ms": from_ms}
        for check_id, shortest_ms, longest_ms in connection.execute(_EXTREMES, since):
            found[check_id] = Extremes(shortest_ms=shortest_ms, longest_ms=longest_ms)
    return found


def list_finals(
    connection: Connection, check_ids: Sequence[str], *, window: tuple[int, int], with_bodies: bool
) -> Iterator[Finished]:
    """Final results of a window in which somebody looked, by check and time."""
    query = _FINALS_WHOLE if with_bodies else _FINALS
    asked = {"check_ids": check_ids, "from_ms": window[0], "to_ms": window[1]}
    for result_id, check_id, ts, location, status, *rest in connection.execute(query, asked):
        yield Finished._make((result_id, check_id, ts, location, _STATUSES[status], *rest))


def count_finals(
    connection: Connection, check_ids: Sequence[str], *, window: tuple[int, int]
) -> int:
    """How many results `list_finals` has."""
    asked = {"check_ids": check_ids, "from_ms": window[0], "to_ms": window[1]}
    return connection.execute(_LOOKS, asked).scalar_one()


def _in_groups(check_ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (check_ids[start : start + size] for start in range(0, len(check_ids), size))


def find(connection: Connection, check_id: str, result_id: str) -> StoredResult | None:
    """One result. None: the check has none with this id."""
    ts = time_of(result_id)
    if ts is None:
        return None
    values = {"check_id": check_id, "ts": ts, "result_id": result_id}
    row = connection.execute(_ONE, values).first()
    return None if row is None else _read(row, row.body)


def of_session(connection: Connection, session_id: str) -> Sequence[StoredResult]:
    """The results of a session so far, without details, in the order of their runs."""
    return [_read(row, None) for row in connection.execute(_OF_SESSION, {"session_id": session_id})]


def of_sessions(
    connection: Connection, session_ids: Collection[str]
) -> Mapping[str, Sequence[StoredResult]]:
    """The results of sessions so far, without details, in the order of their runs, by session."""
    query = select(result).where(result.c.session_id.in_(session_ids))
    found: dict[str, list[StoredResult]] = {}
    for row in connection.execute(query.order_by(result.c.ts, result.c.id)):
        found.setdefault(row.session_id, []).append(_read(row, None))
    return found


_RUNS: Final[Select[Any]] = select(
    result.c.id,
    result.c.location,
    result.c.status,
    result.c.session_id,
    result.c.scheduled_ms,
    result.c.ts,
    result.c.created_ms,
).where(result.c.check_id == bindparam("check_id"), result.c.result_type == _IS_FINAL)
_DUE_TOGETHER: Final = _RUNS.where(
    result.c.ts >= bindparam("due_ms"),
    result.c.scheduled_ms == bindparam("due_ms"),
    result.c.session_id.is_not_distinct_from(bindparam("session_id")),
).order_by(result.c.ts.desc(), result.c.id.desc())
_NEWEST_RUNS: Final = _RUNS.order_by(result.c.ts.desc(), result.c.id.desc()).limit(
    bindparam("most")
)
_RUNS_AS_STORED: Final = (
    _RUNS.where(result.c.ts >= bindparam("from_ms"), result.c.ts < bindparam("to_ms"))
    .order_by(result.c.created_ms, result.c.ts, result.c.id)
    .limit(bindparam("most"))
)
_LAST_PASS: Final = (
    select(result.c.ts)
    .where(
        result.c.check_id == bindparam("check_id"),
        result.c.result_type == _IS_FINAL,
        result.c.status == RunStatus.PASSED.value,
    )
    .order_by(result.c.ts.desc())
    .limit(1)
)


def list_runs_due_together(
    connection: Connection, check_id: str, *, due_ms: int, session_id: str | None
) -> tuple[FinalRun, ...]:
    """The final results of a check's runs of one due time, newest first."""
    values = {"check_id": check_id, "due_ms": due_ms, "session_id": session_id}
    return tuple(map(_read_run, connection.execute(_DUE_TOGETHER, values)))


def list_newest_runs(connection: Connection, check_id: str, *, limit: int) -> tuple[FinalRun, ...]:
    """The newest final results of a check, newest first."""
    values = {"check_id": check_id, "most": limit}
    return tuple(map(_read_run, connection.execute(_NEWEST_RUNS, values)))


def list_runs_as_stored(
    connection: Connection, check_id: str, *, window: tuple[int, int], limit: int
) -> tuple[FinalRun, ...]:
    """The final results of a window, in the order in which they were stored."""
    values = {"check_id": check_id, "from_ms": window[0], "to_ms": window[1], "most": limit}
    return tuple(map(_read_run, connection.execute(_RUNS_AS_STORED, values)))


def find_last_pass_ms(connection: Connection, check_id: str) -> int | None:
    """When the check's newest run that passed began. None: no such result is stored."""
    return connection.execute(_LAST_PASS, {"check_id": check_id}).scalar_one_or_none()


def _read_run(row: Row[Any]) -> FinalRun:
    return FinalRun(
        id=row.id,
        location=row.location,
        status=_STATUSES[row.status],
        session_id=row.session_id,
        scheduled_ms=row.scheduled_ms,
        started_ms=row.ts,
        created_ms=row.created_ms,
    )


def is_id(text: str) -> bool:
    """Whether a text can be a result's id, spelled as ids are: others would sort elsewhere."""
    return time_of(text) is not None and str(UUID(text)) == text


def _conditions(wanted: ResultFilter) -> Iterable[ColumnElement[bool]]:
    if wanted.from_ms is not None:
        yield result.c.ts >= wanted.from_ms
    if wanted.to_ms is not None:
        yield result.c.ts < wanted.to_ms
    if wanted.location is not None:
        yield result.c.location == wanted.location
    if wanted.has_failures is not None:
        failed = result.c.status.in_(_FAILURES)
        yield failed if wanted.has_failures else ~failed
    if wanted.statuses is not None:
        yield result.c.status.in_(sorted(wanted.statuses))
    if wanted.result_type is not None:
        yield result.c.result_type == wanted.result_type.value
    if wanted.after_id is not None:
        ts = time_of(wanted.after_id) or 0
        yield or_(result.c.ts < ts, and_(result.c.ts == ts, result.c.id < wanted.after_id))
        yield result.c.ts <= ts  # what an index can begin with


def _read(row: Row[Any], body: bytes | None, *, is_cut: bool = False) -> StoredResult:
    return StoredResult(
        id=row.id,
        check_id=row.check_id,
        run_id=row.run_id,
        fence=row.fence,
        session_id=row.session_id,
        location=row.location,
        source=row.source,
        result_type=ResultType(row.result_type),
        status=RunStatus(row.status),
        cause=Cause(row.cause) if row.cause else None,
        attempt=row.attempt,
        response_time_ms=row.response_time_ms,
        over_max_response_time=row.over_max_response_time,
        scheduled_ms=row.scheduled_ms,
        started_ms=row.ts,
        stopped_ms=row.stopped_ms,
        created_ms=row.created_ms,
        due_times=row.due_times,
        detail=_read_detail(row.id, body) if body else None,
        is_cut=is_cut,
    )


def _read_detail(result_id: str, body: bytes) -> Result | None:
    """None: the body is damaged; the rest of the result is not."""
    try:
        return decode(body, Result)
    except UnreadableMessageError as problem:
        log.warning("results.unreadable", result_id=result_id, reason=str(problem))
        return None
