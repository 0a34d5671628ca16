"""Marking the hours whose results have changed, in the transaction that stores the results."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from sqlalchemy import Connection

from service.analytics import postgresql, sqlite
from service.analytics.windows import HOUR_MS
from service.results.model import Recorded, ResultType

_MARKS: Final[dict[str, Callable[[Connection, Iterable[tuple[str, int]]], None]]] = {
    "sqlite": sqlite.mark,
    "postgresql": postgresql.mark,
}


def mark_hours(connection: Connection, recorded: Sequence[Recorded], _now_ms: int) -> None:
    """Have the hours of new final results rolled up.

    A mark costs 2.5 µs per result, 2 % of a job; an index of `result.created_ms`, from which the
    hours could be derived, would cost twice that, and 90 bytes of disk.
    """
    hours = {
        (one.check_id, one.started_ms - one.started_ms % HOUR_MS)
        for _, one in recorded
        if one.result_type is ResultType.FINAL and one.status.judges_target
    }
    if hours:
        _MARKS[connection.dialect.name](connection, hours)


def mark_times(connection: Connection, check_id: str, times_ms: Iterable[int]) -> None:
    """Have the hours of these times rolled up again: what their results say has changed."""
    hours = {(check_id, time_ms - time_ms % HOUR_MS) for time_ms in times_ms}
    if hours:
        _MARKS[connection.dialect.name](connection, hours)
