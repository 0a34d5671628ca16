"""What other features ask of scheduling; each is part of the caller's transaction."""

from sqlalchemy import Connection

from service.checks import actions as checks
from service.jobs.settle import end_queued
from service.scheduling import store
from service.scheduling.rules import next_due_ms, rhythm


def plan(connection: Connection, check_id: str, *, now_ms: int) -> None:
    """Bring a check's schedule in line with its row, after it was created or changed.

    A check that was just created or activated runs at once, because its owner waits for a first
    result, and by its phase from then on. One that is not active is planned no more, and its
    queued runs end as MISSED (paused). Deleting a check takes its schedule along by itself.
    """
    check = checks.find_terms(connection, check_id)
    if check is None or not check.activated:
        store.remove(connection, check_id)
        end_queued(connection, check_id, now_ms=now_ms)
        return
    when = rhythm(check_id, frequency_min=check.frequency, offset=check.frequency_offset)
    before = store.rhythm_of(connection, check_id)
    if before is None:
        store.put(connection, check_id, when, next_run_ms=now_ms)
    elif before != when:
        store.put(connection, check_id, when, next_run_ms=next_due_ms(when, after_ms=now_ms))


def wait_for_phase(connection: Connection, check_id: str, *, now_ms: int) -> None:
    """Let a check that was to run at once wait for its turn, unless it is not scheduled."""
    when = store.rhythm_of(connection, check_id)
    if when is not None:
        store.put(connection, check_id, when, next_run_ms=next_due_ms(when, after_ms=now_ms))


def run_now(connection: Connection, check_id: str, *, now_ms: int) -> None:
    """Make a run of a check due now, unless it is not scheduled; it goes on by its phase."""
    when = store.rhythm_of(connection, check_id)
    if when is not None:
        store.put(connection, check_id, when, next_run_ms=now_ms)
