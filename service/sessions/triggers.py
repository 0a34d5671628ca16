"""Starts sessions on request: of single checks, and of whole groups.

A group's checks run in its order, at most as many at once as its concurrency allows. Each check has
a session of its own; a waiting one begins in the transaction in which another ends, so that no
crash holds a group up. The group itself has no result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from sqlalchemy import Connection

from contract.checks import CheckType
from contract.job import RunSource
from service.checks import actions as checks
from service.checks.model import CheckRow, CheckToRun
from service.db.ids import new_id, new_ids
from service.groups import actions as groups
from service.groups.model import GroupRow
from service.http.errors import ConflictError, InvalidError, NotFoundError
from service.jobs import actions as jobs
from service.jobs.model import NewRun
from service.locations import actions as locations
from service.sessions import store
from service.sessions.actions import find, pass_turn
from service.sessions.model import Session, SessionStatus
from service.sessions.rules import matches_tags

_NOT_RUN: Final = " A heartbeat is never run on demand: it waits for pings."
MatchTags = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Which checks to run; both selectors must hold. Without any: all that are activated."""

    match_tags: MatchTags | None = None
    """None: any tags."""
    check_ids: frozenset[str] | None = None
    """None: any check."""
    location: str | None = None
    """Slug: run there alone. None: at all locations of each check."""
    refresh_cache: bool = False
    """Suites install their packages anew."""


def trigger(
    connection: Connection, account_id: str, target: Target, *, now_ms: int
) -> tuple[Session, ...]:
    """Run every activated check that the target means, at all of its locations.

    Raises:
        NotFoundError: it means none. A heartbeat is never run on demand.
        InvalidError: a check does not run at the location.
    """
    chosen = _chosen(connection, account_id, target)
    starter = _Starter(
        locations.list_slugs(connection, account_id),
        checks.find_locations_of_many(connection, [check.id for check in chosen]),
        now_ms,
        target,
    )
    ids = new_ids(now_ms for _ in chosen)
    started = tuple(map(starter.session, ids, chosen))
    store.insert_sessions(connection, started, account_id=account_id)
    jobs.add(connection, list(chain.from_iterable(map(starter.runs, ids, chosen))))
    return started


def list_checks(connection: Connection, account_id: str, target: Target) -> list[str]:
    """The ids of the activated checks that the target means.

    Raises:
        NotFoundError: it means none. A heartbeat is never run on demand.
    """
    return [check.id for check in _chosen(connection, account_id, target)]


def _needed(wanted: MatchTags | None) -> frozenset[str] | None:
    """Tags of which whatever matches has one. None: what matches may have none of any."""
    firsts = [
        next((tag for tag in group if not tag.startswith("!")), None) for group in wanted or ()
    ]
    needed = frozenset(tag for tag in firsts if tag is not None)
    return needed if wanted is not None and None not in firsts else None


def _chosen(connection: Connection, account_id: str, target: Target) -> list[CheckToRun]:
    found = checks.find_runnable(
        connection, account_id, check_ids=target.check_ids, any_of_tags=_needed(target.match_tags)
    )
    meant = [check for check in found if _means(target, check)]
    chosen = [check for check in meant if check.type is not CheckType.HEARTBEAT]
    if not chosen:
        raise NotFoundError("No matching checks were found." + (_NOT_RUN if meant else ""))
    return chosen


def _means(target: Target, check: CheckToRun) -> bool:
    return target.match_tags is None or matches_tags(check.tags, target.match_tags)


@dataclass(frozen=True, slots=True)
class _Starter:
    slugs: Mapping[str, str]
    """By location id."""
    places: Mapping[str, Sequence[str]]
    """Location ids by check."""
    now_ms: int
    target: Target

    def session(self, session_id: str, check: CheckToRun) -> Session:
        places = self._places(check)
        return Session(
            id=session_id,
            check_id=check.id,
            check_type=check.type,
            name=check.name,
            locations=tuple(self.slugs[place] for place in places),
            status=SessionStatus.STARTED,
            pending=len(places),
            started_ms=self.now_ms,
            stopped_ms=None,
            refresh_cache=self.target.refresh_cache,
        )

    def runs(self, session_id: str, check: CheckToRun) -> Sequence[NewRun]:
        wanted = jobs.WantedRuns(
            check_id=check.id,
            location_ids=self._places(check),
            source=RunSource.TRIGGER_API,
            session_id=session_id,
        )
        return jobs.runs_of(wanted, check, now_ms=self.now_ms)

    def _places(self, check: CheckToRun) -> Sequence[str]:
        places, wanted = self.places.get(check.id, ()), self.target.location
        if wanted is None:
            return places
        chosen = [place for place in places if self.slugs[place] == wanted]
        if not chosen:
            have = ", ".join(self.slugs[place] for place in places)
            raise InvalidError(
                f'"runLocation" is not a location of the check; use {have}.',
                keys=("runLocation",),
                source="query",
            )
        return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRun:
    """What is to run."""

    group_id: int
    location: str | None = None
    """Slug: run there alone. None: at all locations of each check."""


def require_no_open_run(connection: Connection, account_id: str, group_id: int) -> None:
    """Whoever calls a link has no key, and runs that wait for a day must not pile up.

    Raises:
        NotFoundError: the account has no such group.
        ConflictError: a run of the group goes on.
    """
    group = groups.find(connection, account_id, group_id)
    if open_one := store.open_of_group(connection, group.id):
        raise ConflictError(
            f"A run of the group {group.name} has not ended (session {open_one.id}); try again when"
            " it has.",
            attributes={"checkSessionId": open_one.id},
        )


def run_group(
    connection: Connection, account_id: str, wanted: GroupRun, *, now_ms: int
) -> tuple[Session, ...]:
    """Run every activated check of a group now; its sessions, in the group's order.

    Raises:
        NotFoundError: the account has no such group, or none of its checks runs on demand.
        InvalidError: none of them runs at the location.
    """
    group = groups.find(connection, account_id, wanted.group_id)
    rows = _members(connection, group)
    places = _places(connection, account_id, rows, wanted.location)
    run = _Run(new_id(now_ms), account_id, now_ms)
    sessions = [
        run.session(row, turn, places[row.id]) for turn, row in enumerate(rows) if places[row.id]
    ]
    store.insert_sessions(connection, sessions, account_id=account_id)
    for _ in range(min(group.doc["concurrency"], len(sessions))):
        pass_turn(connection, run.id, now_ms=now_ms)
    return tuple(find(connection, account_id, session.id) for session in sessions)


def list_of_group(connection: Connection, account_id: str, group_id: int) -> list[str]:
    """The ids of a group's activated checks that can be run on demand, in the group's order.

    Raises:
        NotFoundError: the account has no such group, or none of its checks runs on demand.
    """
    group = groups.find(connection, account_id, group_id)
    return [row.id for row in _members(connection, group)]


def _members(connection: Connection, group: GroupRow) -> list[CheckRow]:
    members = checks.list_runnable_members(connection, group.account_id, group.id)
    rows = [row for row in members if row.type != CheckType.HEARTBEAT]
    if not rows:
        raise NotFoundError(f"No check of the group {group.name} can be run.")
    return rows


@dataclass(frozen=True, slots=True)
class _Run:
    id: str
    account_id: str
    now_ms: int

    def session(self, row: CheckRow, turn: int, places: Sequence[str]) -> Session:
        """The session of a check, which waits for its turn."""
        return Session(
            id=new_id(self.now_ms),
            check_id=row.id,
            check_type=row.type,
            name=row.name,
            locations=tuple(places),
            status=SessionStatus.STARTED,
            pending=len(places),
            started_ms=self.now_ms,
            stopped_ms=None,
            group_run=self.id,
            turn=turn,
        )


def _places(
    connection: Connection, account_id: str, rows: Sequence[CheckRow], location: str | None
) -> Mapping[str, list[str]]:
    """The slugs at which each check runs, by its id; none: not at the location that is wanted."""
    slugs = locations.list_slugs(connection, account_id)
    found = {
        row.id: [
            slugs[place]
            for place in checks.find_locations(connection, row.id)
            if location in (None, slugs[place])
        ]
        for row in rows
    }
    if not any(found.values()):
        raise InvalidError(
            '"runLocation" is not a location of any check of the group.',
            keys=("runLocation",),
            source="query",
        )
    return found
