"""What setting a check up, changing it and deleting it means for its runs."""

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from service.checks.model import CheckRow
from service.heartbeats import actions as heartbeats
from service.http.errors import ConflictError
from service.jobs import actions as jobs
from service.scheduling import actions as scheduling
from service.sessions import actions as sessions
from service.triggers import actions as triggers
from service.triggers.model import Runs, Target


def begin(connection: Connection, check_id: str, *, token: str | None, now_ms: int) -> None:
    """The check is there: take its pings, plan its runs."""
    _watch(connection, check_id, token)
    scheduling.plan(connection, check_id, now_ms=now_ms)


def change(
    connection: Connection,
    before: CheckRow,
    *,
    activated: bool,
    token: str | None,
    now_ms: int,
) -> None:
    """The check is another one now; activating a heartbeat starts its timer over."""
    _watch(connection, before.id, token)
    if token is not None and activated != before.activated:
        heartbeats.reset_timer(connection, before.id)
    scheduling.plan(connection, before.id, now_ms=now_ms)


def end(connection: Connection, check_id: str, *, now_ms: int) -> None:
    """The check goes: so do its runs, and who waits for them is told."""
    jobs.drop_jobs(connection, check_id)
    sessions.abandon(connection, check_id, now_ms=now_ms)
    triggers.forget(connection, Target(Runs.CHECK, check_id))


def _watch(connection: Connection, check_id: str, token: str | None) -> None:
    if token is None:
        return
    try:
        heartbeats.watch(connection, check_id, token)
    except IntegrityError as problem:
        raise ConflictError(
            "This pingToken belongs to another check; use another one, or none to have one made."
        ) from problem
