"""How runs ended, and why they did not pass, as far as an overview of many checks needs it."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from sqlalchemy import Connection

from contract.wire import UnreadableMessageError, decode
from service.results import store
from service.results.model import Ending, RunStatus
from service.results.outcomes import count_due

_STATUSES: Final = {status.value: status for status in RunStatus}


class _Failure(msgspec.Struct, frozen=True):
    message: str = ""


class _Outcome(msgspec.Struct, frozen=True, rename="camel"):
    failure: _Failure | None = None
    degraded_because: str | None = None


class _Result(msgspec.Struct, frozen=True):
    """The part of the contract's Result that is read here."""

    outcome: _Outcome


def list_endings(
    connection: Connection,
    check_ids: Sequence[str],
    *,
    window: tuple[int, int],
    with_passes: bool,
) -> dict[str, list[Ending]]:
    """How the runs of a window ended, by check, in the order of time."""
    found: dict[str, list[Ending]] = {}
    rows = store.list_endings(connection, check_ids, window=window, with_passes=with_passes)
    for row in rows:
        # By position: thousands of rows are read for one page.
        began_ms, due_times, until_ms = row[1], row[5], None
        if due_times is not None:
            until_ms = row[6]
            due_times = count_due(began_ms, until_ms, due_times, window=window)
            if not due_times:
                continue
            began_ms = max(began_ms, window[0])
        ending = Ending(began_ms, _STATUSES[row[2]], row[3], row[4], due_times, until_ms, row[7])
        found.setdefault(row[0], []).append(ending)
    return found


def find_reasons(connection: Connection, results: Mapping[str, str]) -> dict[str, str]:
    """Why results (ids by check) are no pass, by check."""
    found: dict[str, str] = {}
    for check_id, result_id in results.items():
        body = store.find_body(connection, check_id, result_id)
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
