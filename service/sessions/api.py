"""`/v1/check-sessions`: run checks now, and wait for what comes of it."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, cast

from fastapi import Body, Depends, Path, Query
from pydantic import ConfigDict, Field, field_validator, model_validator
from pydantic.config import JsonDict
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from contract.checks import CheckType
from contract.job import RunSource
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.mutations import Changed, CreateDep, sent_fields
from service.http.routing import answers, json, keyed_operations
from service.http.schema import NO_NUL, RequestModel, ResponseModel, Text, field_error
from service.http.times import format_time
from service.results.model import ResultType, RunStatus, StoredResult
from service.sessions.model import Session, SessionStatus
from service.sessions.rules import render_status
from service.sessions.triggers import Target, trigger
from service.sessions.watching import SessionState, Watch
from service.vault.encryption import Scope

MAX_TAG_GROUPS: Final = 100
MAX_TAGS: Final = 20
"""Every check is held against every group, and meanwhile nobody else writes."""
MAX_CHECK_IDS: Final = 10_000


def _describe_as_never_null(schema: JsonDict) -> None:
    """Describe a field that may be left out, and is refused as null."""
    del schema["default"]
    schema.update(cast("list[JsonDict]", schema.pop("anyOf"))[0])


OMITTED: Final[Any] = Field(None, json_schema_extra=_describe_as_never_null)
TagGroup = Annotated[list[Text], Field(max_length=MAX_TAGS)]


class _Closed(RequestModel):
    """A value in which an unknown field is refused, with those that are known."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _knows_every_field(cls, body: Any) -> Any:
        known = [info.alias or name for name, info in cls.model_fields.items()]
        unknown = (name for name in body if name not in known) if isinstance(body, dict) else ()
        if (name := next(iter(unknown), None)) is not None:
            raise field_error(str(name), f"is not a known field; use {' or '.join(known)}")
        return body


class TargetWrite(_Closed):
    """Which checks to run; both selectors must hold, and an empty list chooses none.

    An unknown field is refused: a selector that is passed over would run every check.
    """

    match_tags: Annotated[list[TagGroup], Field(max_length=MAX_TAG_GROUPS)] | None = OMITTED
    """Any of these groups; a group matches when all of its tags are there. `!tag`: is not there.
    A group without tags, and a `!` without one, match none. Left out: whatever the tags."""
    check_id: Annotated[list[Text], Field(max_length=MAX_CHECK_IDS)] | None = OMITTED
    """Any of these checks. Left out: whichever the check."""

    @field_validator("match_tags", "check_id", mode="before")
    @classmethod
    def _is_no_null(cls, value: Any) -> Any:
        """A list that its sender could not fill must not run every check."""
        if value is None:
            raise field_error("", "is null; use an array, or omit it")
        return value


class TriggerWrite(_Closed):
    """What to run now. An unknown field is refused here too."""

    target: TargetWrite | None = None
    """Null or without selectors: every check that is activated."""
    refresh_cache: bool = False
    """Playwright suites install their packages anew, instead of taking kept ones."""


class SessionResultShown(ResponseModel):
    """A result of a session: one FINAL per location, one ATTEMPT per failed earlier attempt."""

    check_result_id: str
    check_result_link: str
    check_id: str
    check_type: CheckType
    name: str
    run_location: str
    result_type: Literal["FINAL", "ATTEMPT"]
    has_errors: bool
    has_failures: bool
    is_degraded: bool
    aborted: bool


class SessionShown(ResponseModel):
    """A check session."""

    check_session_id: str
    check_session_link: str
    check_id: str
    check_type: CheckType
    name: str
    status: SessionStatus
    started_at: datetime
    stopped_at: datetime | None
    """Null: it has not ended."""
    time_elapsed: int
    """Milliseconds; until now if it has not ended."""
    run_locations: list[str]


class SessionWithResults(SessionShown):
    """A check session with its results so far."""

    results: list[SessionResultShown]


class TriggeredShown(ResponseModel):
    """The sessions that a trigger started, one per check."""

    sessions: list[SessionShown]
    not_run: list[str] = Field(default_factory=list)
    """Those of `target.checkId` that it started none for: there is no such check, it is not
    activated, it has other tags, or it is a heartbeat. Left out where there are none."""


class SessionResultV2Shown(SessionResultShown):
    """A result of a session, in the second form."""

    is_cancelled: bool
    """Always false: runs of check sessions are not cancelled."""


class SessionV2Shown(SessionShown):
    """A check session, in the second form."""

    run_source: Literal[RunSource.TRIGGER_API]


class SessionV2WithResults(SessionV2Shown):
    """A check session with its results so far, in the second form."""

    results: list[SessionResultV2Shown]


class TriggeredV2Shown(ResponseModel):
    """The sessions that a trigger started, one per check."""

    sessions: list[SessionV2Shown]
    not_run: list[str] = Field(default_factory=list)
    """Ids that started nothing, likewise. Left out where there are none."""


def render(session: Session, *, base_url: str, now_ms: int) -> dict[str, Any]:
    """A session without its results."""
    until_ms = now_ms if session.stopped_ms is None else session.stopped_ms
    return {
        "checkSessionId": session.id,
        "checkSessionLink": f"{base_url}/v1/check-sessions/{session.id}",
        "checkId": session.check_id,
        "checkType": session.check_type,
        "name": session.name,
        "status": render_status(session).value,
        "startedAt": format_time(session.started_ms),
        "stoppedAt": format_time(session.stopped_ms),
        "timeElapsed": max(0, until_ms - session.started_ms),
        "runLocations": list(session.locations),
    }


def with_results(
    session: Session, results: Iterable[StoredResult], *, base_url: str, now_ms: int
) -> dict[str, Any]:
    """A session and what came of it so far."""
    listed = [_result(one, session, base_url=base_url) for one in results]
    return {**render(session, base_url=base_url, now_ms=now_ms), "results": listed}


def _result(stored: StoredResult, session: Session, *, base_url: str) -> dict[str, Any]:
    return {
        "checkResultId": stored.id,
        "checkResultLink": f"{base_url}/v1/check-results/{stored.check_id}/{stored.id}",
        "checkId": stored.check_id,
        "checkType": session.check_type,
        "name": session.name,
        "runLocation": stored.location,
        "resultType": stored.result_type.value,
        "hasErrors": stored.status.has_errors,
        "hasFailures": stored.status.has_failures,
        "isDegraded": stored.status is RunStatus.DEGRADED,
        "aborted": stored.result_type is ResultType.FINAL and stored.status is RunStatus.MISSED,
    }


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

    def answer(self, seen: SessionState) -> Response:
        """The session as its answer."""
        return json(self.render(seen))

    def render(self, seen: SessionState) -> dict[str, Any]:
        """The session and what came of it so far."""
        return with_results(seen.session, seen.results, base_url=self._base_url, now_ms=seen.now_ms)


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
    return await _trigger(creating, body, more={})


async def _trigger(
    creating: CreateDep, body: TriggerWrite | None, *, more: Mapping[str, str]
) -> Response:
    """Start sessions. `more`: what each of them says besides."""
    base_url, target = creating.base_url, _target(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        now_ms = scope.now_ms
        started = trigger(connection, scope.account_id, target, now_ms=now_ms)
        sessions = [
            {**render(session, base_url=base_url, now_ms=now_ms), **more} for session in started
        ]
        answer = json({"sessions": sessions, **_not_run(target, started)}, status=201)
        only = started[0].id if len(started) == 1 else None
        return Changed(answer=answer, resource_id=only, fields=sent_fields(body) if body else ())

    return await creating.make(change)


@router.get(_ONE, responses=answers(200, SessionWithResults, "The session.", 404))
async def read_check_session(reading: ReadingDep) -> Response:
    """Read a session."""
    return reading.answer(await reading.watch.read())


@router.get(
    _ONE + "/completion",
    responses=answers(200, SessionWithResults, "The session, in its final state.", 404, 408),
)
async def await_check_session(
    reading: ReadingDep,
    max_wait_s: Annotated[float, Query(alias="maxWaitSeconds", ge=1, le=MAX_WAIT_S)] = MAX_WAIT_S,
) -> Response:
    """Wait until a session has ended; 408 if it has not ended in time: try again."""
    return reading.answer(await reading.watch.await_end(max_wait_s=max_wait_s))


_V2: Final = {"runSource": RunSource.TRIGGER_API.value}
router_v2 = keyed_operations("Check sessions", prefix="/v2/check-sessions")


@router_v2.post(
    "/trigger", status_code=201, responses=answers(201, TriggeredV2Shown, "What was started.", 404)
)
async def trigger_check_sessions_v2(
    creating: CreateDep, body: Annotated[TriggerWrite | None, Body()] = None
) -> Response:
    """Run checks now, as `POST /v1/check-sessions/trigger`."""
    return await _trigger(creating, body, more=_V2)


@router_v2.get(
    _ONE + "/completion",
    responses=answers(200, SessionV2WithResults, "The session, in its final state.", 404, 408),
)
async def await_check_session_v2(
    reading: ReadingDep,
    max_wait_s: Annotated[float, Query(alias="maxWaitSeconds", ge=1, le=MAX_WAIT_S)] = MAX_WAIT_S,
) -> Response:
    """Wait until a session has ended; 408 if it has not ended in time: try again."""
    whole = reading.render(await reading.watch.await_end(max_wait_s=max_wait_s))
    results = [{**one, "isCancelled": False} for one in whole["results"]]
    return json({**whole, **_V2, "results": results})


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
