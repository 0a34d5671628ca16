"""`/v1/check-sessions`: run checks now, and wait for what comes of it."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Depends, Path, Query
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from service.http.auth import CallerDep
from service.http.backend import Backend, BackendDep
from service.http.errors import StillRunningError
from service.http.routes import answers, json
from service.http.strict import NO_NUL
from service.results import actions as results
from service.results.model import StoredResult
from service.sessions import actions
from service.sessions.model import Session
from service.sessions.rules import deadline_ms
from service.sessions.shapes import SessionWithResults, TriggeredShown, TriggerWrite
from service.sessions.triggers import Target, trigger
from service.sessions.views import shown, with_results

router = APIRouter(prefix="/v1/check-sessions", tags=["check sessions"])

MAX_WAIT_S: Final = 30
SessionId = Annotated[str, Path(alias="checkSessionId", pattern=NO_NUL, max_length=200)]
_ONE = "/{checkSessionId}"


@dataclass(frozen=True, slots=True)
class _Seen:
    """A session at one moment."""

    session: Session
    results: tuple[StoredResult, ...]
    now_ms: int


class _Reading:
    """A request about one session of the caller."""

    def __init__(
        self, session_id: SessionId, request: Request, caller: CallerDep, backend: BackendDep
    ) -> None:
        self.session_id = session_id
        self.backend: Backend = backend
        self._account_id: str = caller.account_id
        self._base_url = backend.base_url(request)

    async def look(self) -> _Seen:
        """The session as it is; one past its deadline is ended first."""
        seen = await self.backend.database.read(self._query)
        overdue = seen.session.stopped_ms is None and seen.now_ms >= deadline_ms(seen.session)
        return await self.backend.database.write(self._query_ended) if overdue else seen

    def answer(self, seen: _Seen) -> Response:
        """The session as its answer."""
        return json(
            with_results(seen.session, seen.results, base_url=self._base_url, now_ms=seen.now_ms)
        )

    def _query(self, connection: Connection) -> _Seen:
        now_ms = self.backend.clock.now_ms(connection)
        session = actions.find(connection, self._account_id, self.session_id)
        return _Seen(session, tuple(results.of_session(connection, session.id)), now_ms)

    def _query_ended(self, connection: Connection) -> _Seen:
        session = actions.find(connection, self._account_id, self.session_id)
        now_ms = self.backend.clock.now_ms(connection)
        actions.end_overdue(connection, session, now_ms=now_ms)
        return self._query(connection)


ReadingDep = Annotated[_Reading, Depends(_Reading)]


@router.post(
    "/trigger", status_code=201, responses=answers(201, TriggeredShown, "What was started.", 404)
)
async def trigger_check_sessions(
    request: Request,
    caller: CallerDep,
    backend: BackendDep,
    body: Annotated[TriggerWrite | None, Body()] = None,
) -> Response:
    """Run checks now: one session for each activated check that the target means.

    Without a body, without a target and with an empty one, that is every activated check of the
    account. Heartbeats are never run on demand.
    """
    base_url, target = backend.base_url(request), _target(body)

    def change(connection: Connection) -> list[dict[str, Any]]:
        now_ms = backend.clock.now_ms(connection)
        started = trigger(connection, caller.account_id, target, now_ms=now_ms)
        return [shown(session, base_url=base_url, now_ms=now_ms) for session in started]

    return json({"sessions": await backend.database.write(change)}, status=201)


@router.get(_ONE, responses=answers(200, SessionWithResults, "The session.", 404))
async def read_check_session(reading: ReadingDep) -> Response:
    """Read a session."""
    return reading.answer(await reading.look())


@router.get(
    _ONE + "/completion",
    responses=answers(200, SessionWithResults, "The session, in its final state.", 404, 408),
)
async def await_check_session(
    reading: ReadingDep,
    max_wait_s: Annotated[float, Query(alias="maxWaitSeconds", ge=1, le=MAX_WAIT_S)] = MAX_WAIT_S,
) -> Response:
    """Wait until a session has ended; 408 when it has not in time: ask again."""
    # Whoever ends the session between the first look and the wait must find us here.
    with reading.backend.waiters.registered(reading.session_id) as ended:
        seen = await reading.look()
        if seen.session.stopped_ms is None:
            left_s = max(0, deadline_ms(seen.session) - seen.now_ms) / 1000
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), min(max_wait_s, left_s))
            seen = await reading.look()
    if seen.session.stopped_ms is None:
        raise StillRunningError(
            f"The session has not ended within {max_wait_s:g} s; ask again.",
            headers={"retry-after": "1"},
        )
    return reading.answer(seen)


def _target(body: TriggerWrite | None) -> Target:
    """An empty selector lets all checks through, as a missing one does."""
    wanted = body.target if body else None
    refresh_cache = body is not None and body.refresh_cache
    if wanted is None:
        return Target(refresh_cache=refresh_cache)
    return Target(
        refresh_cache=refresh_cache,
        match_tags=tuple(map(tuple, wanted.match_tags)) if wanted.match_tags else None,
        check_ids=frozenset(wanted.check_id) if wanted.check_id else None,
    )
