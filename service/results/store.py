"""SQL that reads results."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, bindparam, case, func, select

from contract.result import Result
from contract.wire import decode
from service.db.ids import time_of
from service.db.tables import result, result_detail, run_final
from service.results.model import Cause, ResultFilter, ResultType, RunStatus, StoredResult

_FAILURES: Final = tuple(status.value for status in RunStatus if status.has_failures)
_BODY: Final = func.coalesce(run_final.c.body, result_detail.c.body)
_MOST_LISTED_BYTES: Final = 256 * 1024
"""A longer detail is left out of lists, so that a page of 100 stays below 26 MB in memory."""
# Of each column by itself: its row says how long it is, and none of it is read.
_SIZE: Final = func.coalesce(func.length(run_final.c.body), func.length(result_detail.c.body))
_WITH_BODY: Final = result.outerjoin(
    run_final,
    (run_final.c.run_id == result.c.run_id) & (result.c.result_type == ResultType.FINAL.value),
).outerjoin(result_detail, result_detail.c.id == result.c.id)
_WHOLE: Final = select(result, _BODY.label("body")).select_from(_WITH_BODY)
_LISTED: Final = select(
    result,
    case((_SIZE <= _MOST_LISTED_BYTES, _BODY)).label("body"),
    (_SIZE > _MOST_LISTED_BYTES).label("is_cut"),
).select_from(_WITH_BODY)
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
    """A page of a check's results, newest first."""
    query = (
        _LISTED.where(result.c.check_id == check_id, *_conditions(wanted))
        .order_by(result.c.ts.desc(), result.c.id.desc())
        .limit(limit)
        .offset(offset)
    )
    return tuple(_read(row, row.body, is_cut=bool(row.is_cut)) for row in connection.execute(query))


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
    if wanted.result_type is not None:
        yield result.c.result_type == wanted.result_type.value


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
        detail=decode(body, Result) if body else None,
        is_cut=is_cut,
    )
