"""A run that somebody asked for, as it goes on: queued, claimed by an agent, verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from contract.checks import CheckType
from service.jobs import actions as jobs
from service.jobs.model import JobState, OpenJob
from service.locations import actions as locations
from service.results import actions as results
from service.results.model import ResultFilter, ResultType, StoredResult
from service.sessions import actions as sessions
from service.sessions.model import Session, SessionStatus
from service.web.check.sections import RunShown, show_run
from service.web.states import State

_FROM_MS: Final = 1_000
"""Results may begin a little before their session, by an agent's clock."""
_AGENT_LETTERS: Final = 12
"""Enough of an agent's id to tell it from others, as on the page of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceProgress:
    """How far the run at one location is."""

    location: str
    state: State
    words: str
    since_ms: int | None
    """Since when it waits or runs. None: it has ended."""
    run: RunShown | None
    """How it ended. None: it goes on, or was not stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """How far the runs of a session are."""

    id: str
    places: Sequence[PlaceProgress]
    is_over: bool
    started_ms: int


def find_progress(
    connection: Connection, account_id: str, check_id: str, session_id: str
) -> RunProgress | None:
    """How far a session of the check is. None: it is another check's.

    Raises:
        NotFoundError: the account has no such session.
    """
    session = sessions.find(connection, account_id, session_id)
    if session.check_id != check_id:
        return None
    slugs = locations.list_slugs(connection, account_id)
    open_jobs = {
        slugs.get(one.location_id, ""): one for one in jobs.list_of_session(connection, session_id)
    }
    finals = _find_finals(connection, session)
    kind = CheckType(session.check_type)
    return RunProgress(
        id=session.id,
        places=[
            _stopped(slug)
            if session.status is SessionStatus.CANCELLED and slug not in finals
            else _place(slug, open_jobs.get(slug), finals.get(slug), kind)
            for slug in session.locations
        ],
        is_over=session.stopped_ms is not None,
        started_ms=session.started_ms,
    )


def _find_finals(connection: Connection, session: Session) -> dict[str, StoredResult]:
    """The final results of a session, with why they are no pass, by location."""
    ids = {
        one.id
        for one in results.of_session(connection, session.id)
        if one.result_type is ResultType.FINAL
    }
    if not ids:
        return {}
    recent = results.list_page(
        connection,
        session.check_id,
        ResultFilter(from_ms=session.started_ms - _FROM_MS),
        limit=100,
    )
    return {one.location: one for one in recent if one.id in ids}


def _stopped(slug: str) -> PlaceProgress:
    return PlaceProgress(
        location=slug, state=State.PAUSED, words="stopped", since_ms=None, run=None
    )


def _place(
    slug: str, job: OpenJob | None, final: StoredResult | None, kind: CheckType
) -> PlaceProgress:
    if final is not None:
        run = show_run(final, kind)
        return PlaceProgress(location=slug, state=run.state, words=run.word, since_ms=None, run=run)
    if job is None:
        return PlaceProgress(
            location=slug, state=State.RUNNING, words="ends", since_ms=None, run=None
        )
    again = f", attempt {job.attempt}" if job.attempt > 1 else ""
    if job.state is JobState.LEASED:
        words = f"runs on agent {(job.agent_id or '')[:_AGENT_LETTERS]}{again}"
        return PlaceProgress(
            location=slug, state=State.RUNNING, words=words, since_ms=job.since_ms, run=None
        )
    return PlaceProgress(
        location=slug, state=State.UNKNOWN, words=f"queued{again}", since_ms=job.since_ms, run=None
    )
