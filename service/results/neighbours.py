"""SQL that leads from a result to others: its run's attempts, the one before, the last good one."""

from typing import Any, Final

from sqlalchemy import Connection, Select, bindparam, or_, select

from service.db.tables.runs import result
from service.results.model import ResultType, RunStatus, StoredResult

_IS_FINAL: Final = ResultType.FINAL.value
_RETRIED_WITHIN_MS: Final = 4 * 3_600_000
"""Longer than a run goes on with all its retries."""
_ATTEMPTS: Final[Select[Any]] = (
    select(result.c.attempt, result.c.id)
    .where(
        result.c.check_id == bindparam("check_id"),
        result.c.ts.between(bindparam("from_ms"), bindparam("to_ms")),
        result.c.run_id == bindparam("run_id"),
    )
    .order_by(result.c.attempt, result.c.id)
)
_FINALS: Final = (
    select(result.c.id)
    .where(result.c.check_id == bindparam("check_id"), result.c.result_type == _IS_FINAL)
    .limit(1)
)
_PASS_BEFORE: Final = _FINALS.where(
    result.c.ts < bindparam("before_ms"),
    result.c.location == bindparam("location"),
    result.c.status == RunStatus.PASSED.value,
).order_by(result.c.ts.desc(), result.c.id.desc())
_BEFORE: Final = _FINALS.where(
    result.c.location == bindparam("location"),
    result.c.ts <= bindparam("ts"),
    or_(result.c.ts < bindparam("ts"), result.c.id < bindparam("result_id")),
).order_by(result.c.ts.desc(), result.c.id.desc())
_AFTER: Final = _FINALS.where(
    result.c.location == bindparam("location"),
    result.c.ts >= bindparam("ts"),
    or_(result.c.ts > bindparam("ts"), result.c.id > bindparam("result_id")),
).order_by(result.c.ts, result.c.id)


def list_attempts(connection: Connection, of: StoredResult) -> list[tuple[int, str]]:
    """The attempts of a result's run, its own among them: their numbers and ids, in order."""
    values = {
        "check_id": of.check_id,
        "from_ms": of.started_ms - _RETRIED_WITHIN_MS,
        "to_ms": of.started_ms + _RETRIED_WITHIN_MS,
        "run_id": of.run_id,
    }
    return [(attempt, found) for attempt, found in connection.execute(_ATTEMPTS, values)]


def find_pass_before(connection: Connection, of: StoredResult) -> str | None:
    """The newest run that passed before a result, at its location. None: none is stored."""
    values = {"check_id": of.check_id, "before_ms": of.started_ms, "location": of.location}
    return connection.execute(_PASS_BEFORE, values).scalar_one_or_none()


def find_neighbours(connection: Connection, of: StoredResult) -> tuple[str | None, str | None]:
    """The final results before and after one, at its location. None: there is none."""
    values = {
        "check_id": of.check_id,
        "location": of.location,
        "ts": of.started_ms,
        "result_id": of.id,
    }
    before, after = (
        connection.execute(query, values).scalar_one_or_none() for query in (_BEFORE, _AFTER)
    )
    return before, after
