"""A run that somebody asked for, as it goes on: queued, claimed by an agent, verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection

from contract.checks import CheckType
from service.agents import actions as agents
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
    agent: str
    """The agent that runs it, with its version. Empty: none does."""
    attempt: int
    """1 for the first."""
    run: RunShown | None
    """How it ended. None: it goes on, or was not stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """How far the runs of a session are."""

    id: str
    places: Sequence[PlaceProgress]
    is_over: bool
    started_ms: int


def name_agent(agent_id: str, version: str | None) -> str:
    """An agent as pages name it: `7f3a09c1d2e4 (0.3.1)`. No version: nobody knows it any more."""
    return agent_id[:_AGENT_LETTERS] + (f" ({version})" if version else "")


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
    names = _name_agents(connection, list(open_jobs.values()))
    finals = _find_finals(connection, session)
    kind = CheckType(session.check_type)
    return RunProgress(
        id=session.id,
        places=[
            _end(slug, finals[slug], kind)
            if slug in finals
            else _place(slug, session, open_jobs.get(slug), names)
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


def _name_agents(connection: Connection, jobs_open: Sequence[OpenJob]) -> Mapping[str, str]:
    """The agents that hold these jobs, by id."""
    held = {one.agent_id: one.location_id for one in jobs_open if one.agent_id}
    seen = agents.seen_at(connection, sorted(set(held.values()))) if held else ()
    versions = {one.id: one.version for one in seen}
    return {agent_id: name_agent(agent_id, versions.get(agent_id)) for agent_id in held}


def _end(slug: str, final: StoredResult, kind: CheckType) -> PlaceProgress:
    run = show_run(final, kind)
    return PlaceProgress(
        location=slug,
        state=run.state,
        words=run.word,
        since_ms=None,
        agent="",
        attempt=run.attempt,
        run=run,
    )


def _place(
    slug: str, session: Session, job: OpenJob | None, names: Mapping[str, str]
) -> PlaceProgress:
    """A run without a final result."""
    blank = PlaceProgress(
        location=slug,
        state=State.RUNNING,
        words="ends",
        since_ms=None,
        agent="",
        attempt=job.attempt if job else 1,
        run=None,
    )
    if session.status is SessionStatus.CANCELLED:
        return replace(blank, state=State.PAUSED, words="stopped")
    if session.stopped_ms is not None:
        return replace(blank, state=State.UNKNOWN, words="ended without a result")
    if job is None:
        return blank
    again = f", attempt {job.attempt}" if job.attempt > 1 else ""
    blank = replace(blank, since_ms=job.since_ms)
    if job.state is JobState.LEASED:
        agent = names.get(job.agent_id or "", "")
        return replace(blank, words=f"runs on agent {agent}{again}", agent=agent)
    return replace(blank, state=State.UNKNOWN, words=f"queued{again}")
