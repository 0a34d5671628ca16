"""`/v1/check-sessions`: run checks now, and wait for what comes of it."""

from collections.abc import Iterable
from typing import Annotated, Final

from fastapi import Body, Depends, Path, Query
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from service.http.auth import CallerDep
from service.http.backend import BackendDep
from service.http.changing import Changed, CreateDep, sent_fields
from service.http.errors import StillRunningError
from service.http.operations import keyed_operations
from service.http.routes import answers, json
from service.http.strict import NO_NUL
from service.sessions.model import Session
from service.sessions.shapes import SessionWithResults, TriggeredShown, TriggerWrite
from service.sessions.triggers import Target, trigger
from service.sessions.views import shown, with_results
from service.sessions.watching import Seen, Watch

router = keyed_operations("Check sessions", prefix="/v1/check-sessions")

MAX_WAIT_S: Final = 30
SessionId = Annotated[str, Path(alias="checkSessionId", pattern=NO_NUL, max_length=200)]
_ONE = "/{checkSessionId}"


class _Reading:
    """A request about one session of the caller."""

    def __init__(
        self, session_id: SessionId, request: Request, caller: CallerDep, backend: BackendDep
    ) -> None:
        self.watch = Watch(backend, caller.account_id, session_id)
        self._base_url = backend.base_url(request)

    def answer(self, seen: Seen) -> Response:
        """The session as its answer."""
        return json(
            with_results(seen.session, seen.results, base_url=self._base_url, now_ms=seen.now_ms)
        )


ReadingDep = Annotated[_Reading, Depends(_Reading)]


@router.post(
    "/trigger", status_code=201, responses=answers(201, TriggeredShown, "What was started.", 404)
)
async def trigger_check_sessions(
    creating: CreateDep, body: Annotated[TriggerWrite | None, Body()] = None
) -> Response:
    """Run checks now: one session for each activated check that the target means.

    Without a body, without a target and with `{}` for one, that is every activated check of the
    account; a selector that is an empty list chooses none. Heartbeats are never run on demand. Ids
    that lead to no session stand in `notRun`.
    """
    base_url, target = creating.base_url, _target(body)

    def change(connection: Connection, now_ms: int) -> Changed:
        started = trigger(connection, creating.account_id, target, now_ms=now_ms)
        sessions = [shown(session, base_url=base_url, now_ms=now_ms) for session in started]
        answer = json({"sessions": sessions, **_not_run(target, started)}, status=201)
        only = started[0].id if len(started) == 1 else None
        return Changed(answer=answer, resource_id=only, fields=sent_fields(body) if body else ())

    return await creating.make(change)


@router.get(_ONE, responses=answers(200, SessionWithResults, "The session.", 404))
async def read_check_session(reading: ReadingDep) -> Response:
    """Read a session."""
    return reading.answer(await reading.watch.look())


@router.get(
    _ONE + "/completion",
    responses=answers(200, SessionWithResults, "The session, in its final state.", 404, 408),
)
async def await_check_session(
    reading: ReadingDep,
    max_wait_s: Annotated[float, Query(alias="maxWaitSeconds", ge=1, le=MAX_WAIT_S)] = MAX_WAIT_S,
) -> Response:
    """Wait until a session has ended; 408 when it has not in time: ask again."""
    seen = await reading.watch.wait(max_wait_s=max_wait_s)
    if not seen.is_over:
        raise StillRunningError(
            f"The session has not ended within {max_wait_s:g} s; ask again.",
            headers={"retry-after": "1"},
        )
    return reading.answer(seen)


def _target(body: TriggerWrite | None) -> Target:
    """An empty selector chooses nothing; a missing one lets all checks through."""
    wanted = body.target if body else None
    refresh_cache = body is not None and body.refresh_cache
    if wanted is None:
        return Target(refresh_cache=refresh_cache)
    return Target(
        refresh_cache=refresh_cache,
        match_tags=None if wanted.match_tags is None else tuple(map(tuple, wanted.match_tags)),
        check_ids=None if wanted.check_id is None else frozenset(wanted.check_id),
    )


def _not_run(target: Target, started: Iterable[Session]) -> dict[str, list[str]]:
    """A slip in one of many ids would not be seen, as the others run."""
    left = (target.check_ids or frozenset()) - {session.check_id for session in started}
    return {"notRun": sorted(left)} if left else {}
