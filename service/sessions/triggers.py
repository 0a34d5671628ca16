"""Starting sessions: which checks are meant, and their runs into the queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from contract.checks import CheckType
from contract.job import RunSource
from service.checks import actions as checks
from service.checks.model import CheckRow
from service.db.ids import new_id
from service.http.errors import NotFoundError
from service.jobs import actions as jobs
from service.locations import actions as locations
from service.sessions import store
from service.sessions.model import Session, SessionStatus
from service.sessions.rules import matches_tags


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Which checks to run; both selectors must hold. Without any: all that are activated."""

    match_tags: tuple[tuple[str, ...], ...] | None = None
    """None: any tags."""
    check_ids: frozenset[str] | None = None
    """None: any check."""
    refresh_cache: bool = False
    """Suites install their packages anew."""


def trigger(
    connection: Connection, account_id: str, target: Target, *, now_ms: int
) -> tuple[Session, ...]:
    """Run every activated check that the target means, at all of its locations.

    Raises:
        NotFoundError: it means none. A heartbeat is never run on demand.
    """
    chosen = [row for row in checks.activated(connection, account_id) if _means(target, row)]
    if not chosen:
        raise NotFoundError("No matching checks were found.")
    slugs = locations.slugs(connection, account_id)
    starter = _Starter(connection, account_id, slugs, now_ms, target.refresh_cache)
    return tuple(starter.start(row) for row in chosen)


def _means(target: Target, row: CheckRow) -> bool:
    if row.type == CheckType.HEARTBEAT:
        return False
    if target.check_ids is not None and row.id not in target.check_ids:
        return False
    tags: Sequence[str] = row.doc["tags"]
    return target.match_tags is None or matches_tags(tags, target.match_tags)


@dataclass(frozen=True, slots=True)
class _Starter:
    connection: Connection
    account_id: str
    slugs: Mapping[str, str]
    """By location id."""
    now_ms: int
    refresh_cache: bool

    def start(self, row: CheckRow) -> Session:
        places = checks.locations_of(self.connection, row.id)
        session = Session(
            id=new_id(self.now_ms),
            check_id=row.id,
            check_type=row.type,
            name=row.name,
            locations=tuple(self.slugs[place] for place in places),
            status=SessionStatus.STARTED,
            pending=len(places),
            started_ms=self.now_ms,
            stopped_ms=None,
            refresh_cache=self.refresh_cache,
        )
        store.insert_session(self.connection, session, account_id=self.account_id)
        wanted = jobs.WantedRuns(
            check_id=row.id,
            location_ids=places,
            source=RunSource.TRIGGER_API,
            session_id=session.id,
        )
        jobs.enqueue(self.connection, wanted, now_ms=self.now_ms)
        return session
