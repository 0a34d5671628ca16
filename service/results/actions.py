"""What other features ask about results; `recording` stores them, `ingest` takes them in."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from sqlalchemy import Connection

from service.results import endings, measuring, neighbours, outcomes, store
from service.results.model import (
    Cause,
    Ending,
    Extremes,
    FinalRun,
    Finished,
    Measurement,
    Removed,
    ResultFilter,
    RunStatus,
    Standing,
    StoredResult,
)
from service.results.removal import store as removal


def of_session(connection: Connection, session_id: str) -> Sequence[StoredResult]:
    """The results of a session so far, without details, in the order of their runs."""
    return store.of_session(connection, session_id)


def of_sessions(
    connection: Connection, session_ids: Collection[str]
) -> Mapping[str, Sequence[StoredResult]]:
    """The results of sessions so far, as `of_session` has them, by session; none: not in it."""
    return store.of_sessions(connection, session_ids)


def standings(connection: Connection, check_ids: Sequence[str]) -> Mapping[str, Standing]:
    """How each check stands that has a final result, by the newest one.

    A huge one is not searched for its certificate.
    """
    return store.standings(connection, check_ids)


def passes(connection: Connection, check_id: str, *, window: tuple[int, int]) -> tuple[int, int]:
    """How many final results of a window passed, and how many there are in which somebody looked.

    The window is in ms since 1970, its end exclusive.
    """
    counts = outcomes.count_outcomes(connection, check_id, window=window).items()
    looks = sum(number for (status, _), number in counts if status.judges_target)
    bad = sum(number for (status, _), number in counts if status.has_failures)
    return looks - bad, looks


def measurements(connection: Connection, check_ids: Sequence[str]) -> Mapping[str, Measurement]:
    """What the newest final result of each check measured that has one; of a huge one, its time."""
    return measuring.measurements(connection, check_ids)


def list_failures(
    connection: Connection, check_id: str, *, window: tuple[int, int], limit: int | None = None
) -> Mapping[str, int]:
    """When the first final results of a window that failed began, by id; the window as above.

    No limit: all of them.
    """
    return store.list_failures(connection, check_id, window=window, limit=limit)


def extremes(
    connection: Connection, check_ids: Sequence[str], *, from_ms: int
) -> Mapping[str, Extremes]:
    """The shortest and longest response time since `from_ms`, by check; none where nothing ran."""
    return store.extremes(connection, check_ids, from_ms=from_ms)


def find(connection: Connection, check_id: str, result_id: str) -> StoredResult | None:
    """One result with what its agent sent. None: the check has none with this id."""
    return store.find(connection, check_id, result_id)


def list_attempts(connection: Connection, of: StoredResult) -> Sequence[tuple[int, str]]:
    """The attempts of a result's run, its own among them: their numbers and ids, in order."""
    return neighbours.list_attempts(connection, of)


def find_pass_before(connection: Connection, of: StoredResult) -> str | None:
    """The newest run that passed before a result, at its location. None: none is stored."""
    return neighbours.find_pass_before(connection, of)


def find_neighbours(connection: Connection, of: StoredResult) -> tuple[str | None, str | None]:
    """The final results before and after one, at its location. None: there is none."""
    return neighbours.find_neighbours(connection, of)


def list_runs_due_together(
    connection: Connection, check_id: str, *, due_ms: int, session_id: str | None
) -> Sequence[FinalRun]:
    """The final results of a check's runs of one due time, newest first.

    `session_id`: None: of runs that belong to no session.
    """
    return store.list_runs_due_together(connection, check_id, due_ms=due_ms, session_id=session_id)


def list_newest_runs(connection: Connection, check_id: str, *, limit: int) -> Sequence[FinalRun]:
    """The newest final results of a check, newest first."""
    return store.list_newest_runs(connection, check_id, limit=limit)


def list_runs_as_stored(
    connection: Connection, check_id: str, *, window: tuple[int, int], limit: int
) -> Sequence[FinalRun]:
    """The final results of runs that began in a window, in the order in which they were stored.

    The window is in ms since 1970, its end exclusive.
    """
    return store.list_runs_as_stored(connection, check_id, window=window, limit=limit)


def find_last_pass_ms(connection: Connection, check_id: str) -> int | None:
    """When the check's newest run that passed began. None: no such result is stored."""
    return store.find_last_pass_ms(connection, check_id)


def list_finals(
    connection: Connection, check_ids: Sequence[str], *, window: tuple[int, int], with_bodies: bool
) -> Iterator[Finished]:
    """Final results of a window in which somebody looked at the target, by check and time."""
    return store.list_finals(connection, check_ids, window=window, with_bodies=with_bodies)


def list_endings(
    connection: Connection,
    check_ids: Sequence[str],
    *,
    window: tuple[int, int],
    with_passes: bool = True,
) -> Mapping[str, Sequence[Ending]]:
    """How the runs of a window ended, by check, in the order of time.

    Without passes: those that passed are left out.
    """
    return endings.list_endings(connection, check_ids, window=window, with_passes=with_passes)


def find_reasons(connection: Connection, results: Mapping[str, str]) -> Mapping[str, str]:
    """Why results (ids by check) are no pass, in the words of whoever looked, by check.

    One is left out of which nothing is stored, or too much.
    """
    return endings.find_reasons(connection, results)


def count_finals(
    connection: Connection, check_ids: Sequence[str], *, window: tuple[int, int]
) -> int:
    """How many results `list_finals` has."""
    return store.count_finals(connection, check_ids, window=window)


def count_causes(
    connection: Connection, account_id: str, location: str, *, from_ms: int
) -> Mapping[Cause, int]:
    """Why due times at a location came to nothing since a time, and how many for each cause."""
    return outcomes.count_causes(connection, account_id, location, from_ms=from_ms)


def list_page(
    connection: Connection,
    check_id: str,
    wanted: ResultFilter,
    *,
    limit: int,
    offset: int = 0,
) -> Sequence[StoredResult]:
    """A page of a check's results, newest first; details that are too long for it are left out."""
    return store.of_check(connection, check_id, wanted, limit=limit, offset=offset)


def count_outcomes(
    connection: Connection, check_id: str, *, window: tuple[int, int]
) -> Mapping[tuple[RunStatus, Cause | None], int]:
    """How many due times of a window ended with each status and cause; the window as above."""
    return outcomes.count_outcomes(connection, check_id, window=window)


def find_degraded(
    connection: Connection, check_ids: Sequence[str], *, window: tuple[int, int], step_ms: int
) -> Mapping[str, Sequence[int]]:
    """When the first degraded run of each bucket began that has one, by check.

    Buckets of `step_ms` begin with the window, which is as above.
    """
    return outcomes.find_degraded(connection, check_ids, window=window, step_ms=step_ms)


def next_check_before(connection: Connection, *, after_id: str, before_ms: int) -> str | None:
    """The next check, in the order of ids, with results from before. None: there is none.

    Deleted checks have results, too.
    """
    return removal.next_check_before(connection, after_id=after_id, before_ms=before_ms)


def remove_before(connection: Connection, check_id: str, *, before_ms: int, most: int) -> Removed:
    """Remove the oldest results of a check that started before."""
    return removal.remove_before(connection, check_id, before_ms=before_ms, most=most)


def remove_details_before(connection: Connection, *, before_ms: int, most: int) -> int:
    """Remove what agents sent of attempts that began before; how many went."""
    return removal.remove_details_before(connection, before_ms=before_ms, most=most)


def has_late_before(connection: Connection, *, before_ms: int) -> bool:
    """Whether there are results that came too late, and before this time."""
    return removal.has_late_before(connection, before_ms=before_ms)


def remove_late(connection: Connection, *, before_ms: int, most: int) -> int:
    """Remove results that came too late, and before this time; how many went."""
    return removal.remove_late(connection, before_ms=before_ms, most=most)
