"""Running a whole group: its checks in its order, so many at a time.

Each check has a session of its own; those that have to wait begin as others end, in the
transaction in which these end, so that no crash holds a group up. There is no result of the group.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from contract.checks import CheckType
from service.checks import actions as checks
from service.checks.model import CheckRow
from service.db.ids import new_id
from service.groups import actions as groups
from service.http.errors import ConflictError, InvalidError, NotFoundError
from service.locations import actions as locations
from service.sessions import store
from service.sessions.actions import find, pass_turn
from service.sessions.model import Session, SessionStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRun:
    """What is to run."""

    group_id: int
    location: str | None = None
    """Slug: run there alone. None: at all locations of each check."""


def hold_one_run(connection: Connection, account_id: str, group_id: int) -> None:
    """Whoever calls a link has no key, and runs that wait for a day must not pile up.

    Raises:
        NotFoundError: the account has no such group.
        ConflictError: a run of the group goes on.
    """
    group = groups.find(connection, account_id, group_id)
    if open_one := store.open_of_group(connection, group.id):
        raise ConflictError(
            f"A run of the group {group.name} goes on, as of session {open_one.id}; call again when"
            " it has ended.",
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
    members = checks.runnable_of_group(connection, account_id, group.id)
    rows = [row for row in members if row.type != CheckType.HEARTBEAT]
    if not rows:
        raise NotFoundError(f"No check of the group {group.name} can be run.")
    places = _places(connection, account_id, rows, wanted.location)
    run = _Run(new_id(now_ms), account_id, now_ms)
    sessions = [
        run.session(row, turn, places[row.id]) for turn, row in enumerate(rows) if places[row.id]
    ]
    store.insert_sessions(connection, sessions, account_id=account_id)
    for _ in range(min(group.doc["concurrency"], len(sessions))):
        pass_turn(connection, run.id, now_ms=now_ms)
    return tuple(find(connection, account_id, session.id) for session in sessions)


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
    slugs = locations.slugs(connection, account_id)
    found = {
        row.id: [
            slugs[place]
            for place in checks.locations_of(connection, row.id)
            if location in (None, slugs[place])
        ]
        for row in rows
    }
    if not any(found.values()):
        raise InvalidError(
            '"runLocation" is no location of any check of the group.',
            keys=("runLocation",),
            source="query",
        )
    return found
