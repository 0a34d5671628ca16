"""How runs ended, and why they did not pass, as far as an overview of many checks needs it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Select, and_, bindparam, case, func, select

from contract.wire import UnreadableMessageError, decode
from service.db.ids import time_of
from service.db.tables.runs import result, result_detail, run_final
from service.results.model import Ending, ResultType, RunStatus

_GROUP: Final = 1_000
"""How many checks a query covers."""
_MOST_BYTES: Final = 256 * 1024
"""A longer body is not searched for its reason."""
_STATUSES: Final = {status.value: status for status in RunStatus}
_IS_FINAL: Final = ResultType.FINAL.value
_BODY: Final = func.coalesce(run_final.c.body, result_detail.c.body)
_SIZE: Final = func.coalesce(func.length(run_final.c.body), func.length(result_detail.c.body))
_HAS_BODY: Final = and_(run_final.c.run_id == result.c.run_id, result.c.result_type == _IS_FINAL)
_WITH_BODY: Final = result.outerjoin(run_final, _HAS_BODY).outerjoin(
    result_detail, result_detail.c.id == result.c.id
)


class _Failure(msgspec.Struct, frozen=True):
    message: str = ""


class _Outcome(msgspec.Struct, frozen=True, rename="camel"):
    failure: _Failure | None = None
    degraded_because: str | None = None


class _Result(msgspec.Struct, frozen=True):
    """The part of the contract's Result that is read here."""

    outcome: _Outcome


_ENDINGS: Final[Select[Any]] = (
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
        result.c.ts >= bindparam("from_ms"),
        result.c.ts < bindparam("to_ms"),
        result.c.result_type == _IS_FINAL,
    )
    .order_by(result.c.check_id, result.c.ts, result.c.id)
)
_NO_PASSES: Final = _ENDINGS.where(result.c.status != RunStatus.PASSED.value)
_REASON: Final[Select[Any]] = (
    select(case((_SIZE <= _MOST_BYTES, _BODY)))
    .select_from(_WITH_BODY)
    .where(
        result.c.check_id == bindparam("check_id"),
        result.c.ts == bindparam("ts"),
        result.c.id == bindparam("result_id"),
    )
)


def list_endings(
    connection: Connection,
    check_ids: Sequence[str],
    *,
    window: tuple[int, int],
    with_passes: bool,
) -> dict[str, list[Ending]]:
    """How the runs of a window ended, by check, in the order of time."""
    asked = {"from_ms": window[0], "to_ms": window[1]}
    found: dict[str, list[Ending]] = {}
    for some in _in_groups(check_ids):
        rows = connection.execute(
            _ENDINGS if with_passes else _NO_PASSES, {**asked, "check_ids": some}
        )
        for check_id, ts, status, location, time_ms, due_times, stopped_ms, its_id in rows:
            until_ms = stopped_ms if due_times else None
            ending = Ending(ts, _STATUSES[status], location, time_ms, due_times, until_ms, its_id)
            found.setdefault(check_id, []).append(ending)
    return found


def find_reasons(connection: Connection, results: Mapping[str, str]) -> dict[str, str]:
    """Why results (ids by check) are no pass, by check."""
    found: dict[str, str] = {}
    for check_id, result_id in results.items():
        asked = {"check_id": check_id, "ts": time_of(result_id), "result_id": result_id}
        body = connection.execute(_REASON, asked).scalar()
        reason = _read_reason(body) if body else None
        if reason:
            found[check_id] = reason
    return found


def _read_reason(body: bytes) -> str | None:
    try:
        outcome = decode(body, _Result).outcome
    except UnreadableMessageError:
        return None
    return outcome.failure.message if outcome.failure else outcome.degraded_because


def _in_groups(check_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (check_ids[start : start + _GROUP] for start in range(0, len(check_ids), _GROUP))
