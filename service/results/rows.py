"""Results as rows, in the order of the columns that the engines' own statements insert."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from contract.job import RunSource
from service.results.model import Cause, Record, ResultType, RunStatus

_TEXTS: Final[Mapping[str, str]] = {
    one: one.value for kind in (RunSource, ResultType, RunStatus, Cause) for one in kind
}
"""To ask a member for its value takes 0.2 µs, and there are four in a row."""
# `marks` are the parameters, as the driver of the engine writes them.
INSERT_RESULT: Final = """
INSERT INTO result (check_id, ts, id, run_id, fence, session_id, location, source, result_type,
  status, cause, attempt, response_time_ms, over_max_response_time, scheduled_ms, stopped_ms,
  created_ms, due_times)
VALUES ({marks})
"""
PUT_STATE: Final = """
INSERT INTO check_state (check_id, status, since_ms, result_id, result_ms) VALUES ({marks})
ON CONFLICT (check_id) DO UPDATE SET
  since_ms = CASE WHEN check_state.status = excluded.status THEN check_state.since_ms
    ELSE excluded.since_ms END,
  status = excluded.status, result_id = excluded.result_id, result_ms = excluded.result_ms
WHERE (excluded.result_ms, excluded.result_id) > (check_state.result_ms, check_state.result_id)
"""


def result_row(result_id: str, record: Record, slug: str, now_ms: int) -> tuple[object, ...]:
    """A row of `result`, as `INSERT_RESULT` has it."""
    return (
        record.check_id,
        record.started_ms,
        result_id,
        record.run_id,
        record.fence,
        record.session_id,
        slug,
        _TEXTS[record.source],
        _TEXTS[record.result_type],
        _TEXTS[record.status],
        _TEXTS[record.cause] if record.cause else None,
        record.attempt,
        record.response_time_ms,
        record.over_max_response_time,
        record.scheduled_ms,
        record.stopped_ms,
        now_ms,
        record.due_times,
    )


def detail_rows(named: Iterable[tuple[str, Record]]) -> Iterator[tuple[object, ...]]:
    """Rows of `result_detail`: the bodies of attempts."""
    return (
        (one, record.body)
        for one, record in named
        if record.body and record.result_type is ResultType.ATTEMPT
    )


def state_rows(finals: Iterable[tuple[str, Record]]) -> Iterator[tuple[object, ...]]:
    """Rows of `check_state`, one for each result that judges its target."""
    return (
        (record.check_id, _TEXTS[record.status], record.started_ms, one, record.started_ms)
        for one, record in finals
        if record.status.judges_target
    )
