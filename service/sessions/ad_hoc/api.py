"""`/v1/test-sessions`: run a check once that is not stored.

Its run alerts nobody, counts in no analytics, and is not retried; its result is kept as long as
others are.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from fastapi import Body, Depends, Path, Query
from pydantic import Field
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from contract.checks import CheckType
from contract.job import RunSource
from service.checks import changes
from service.checks.model import UnstoredCheck
from service.checks.types.registry import ANY_TYPED
from service.checks.types.url import URL
from service.db.ids import new_id
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.errors import InvalidError, NotFoundError
from service.http.mutations import Changed, CreateDep, sent_fields
from service.http.routing import answers, json, keyed_operations
from service.http.schema import NO_NUL, RequestModel, ResponseModel, Text
from service.http.times import format_time
from service.jobs import actions as jobs
from service.locations import actions as locations
from service.results import actions as results
from service.results.model import ResultType, RunStatus, StoredResult
from service.results.shapes import CheckResultShown
from service.results.views import render
from service.sessions import store
from service.sessions.model import (
    Session,
    SessionStatus,
    TestMember,
    TestSession,
    TestStatus,
)
from service.sessions.watching import SessionState, Watch
from service.vault.encryption import Scope

_MAX_WAIT_S: Final = 30
_JOB: Final = "checkRunJobs[0]"
"""Where the one job of a run stands in its body."""
_ONLY: Final = "check"
"""What the one check is called."""
_PATH: Final = "/v1/test-sessions"
_ONE: Final = "/{testSessionId}"
_PASSES: Final = frozenset({SessionStatus.PASSED, SessionStatus.DEGRADED})


class RunLocationWrite(RequestModel):
    """Where to run."""

    type: Literal["PRIVATE", "PUBLIC"]
    """PRIVATE: `slugName` says where. PUBLIC: `region` does."""
    slug_name: Text | None = None
    """The slug of a private location."""
    region: Text | None = None
    """A region; this installation serves only those that are the slug of a private location."""

    @property
    def field(self) -> str:
        """The field that says where."""
        return "slugName" if self.type == "PRIVATE" else "region"

    @property
    def slug(self) -> str:
        """The slug of the location; empty: none was sent."""
        return (self.slug_name if self.type == "PRIVATE" else self.region) or ""


class AdHocRunWrite(RequestModel):
    """A check to run once."""

    check_run_jobs: Annotated[
        list[Annotated[ANY_TYPED, Field(discriminator="check_type")]],
        Field(min_length=1, max_length=1),
    ]
    """The check, as in `POST /v1/checks`. It runs at `runLocation`, whatever its own locations."""
    run_location: RunLocationWrite
    """Where to run it."""
    refresh_cache: bool = False
    """Playwright suites install their packages anew, instead of taking kept ones."""
    hidden_values_of: Text | None = None
    """The id of a stored check: where the job has `*********`, and where a secret is empty, the
    values of that check are used. Null: the job hides none."""


class AdHocStarted(ResponseModel):
    """What was started."""

    test_session_id: str
    test_session_link: str


class AdHocStatus(StrEnum):
    """How far a test session is."""

    RUNNING = "RUNNING"
    PASSED = "PASSED"
    FAILED = "FAILED"


class AdHocResultShown(ResponseModel):
    """The result of a run of a test session."""

    test_session_result_id: str
    test_session_result_link: str
    check_type: CheckType
    name: str
    run_location: str
    result_type: Literal["FINAL", "ATTEMPT"]
    status: AdHocStatus
    has_errors: bool
    has_failures: bool
    is_degraded: bool
    aborted: bool


class AdHocSessionShown(ResponseModel):
    """A test session."""

    test_session_id: str
    test_session_link: str
    name: str
    status: AdHocStatus
    started_at: datetime
    stopped_at: datetime | None
    """Null: it has not ended."""
    time_elapsed: int
    """Milliseconds; until now if it has not ended."""
    results: list[AdHocResultShown]


router = keyed_operations("Test sessions", prefix=_PATH)


@router.post(
    "/run",
    status_code=202,
    responses=answers(202, AdHocStarted, "What was started.", 404),
    openapi_extra={
        "requestBody": {
            "content": {
                "application/json": {
                    "example": {
                        "checkRunJobs": [{**URL.example, "checkType": URL.kind.value}],
                        "runLocation": {"type": "PRIVATE", "slugName": "default"},
                    }
                }
            }
        }
    },
)
async def run_test_session(body: Annotated[AdHocRunWrite, Body()], creating: CreateDep) -> Response:
    """Run a check once that is not stored. It alerts nobody and counts in no analytics."""
    base_url, ignored = creating.base_url, await creating.ignored_fields(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        session = start(connection, scope, body)
        answer = {"testSessionId": session.id, "testSessionLink": _link(base_url, session)}
        return Changed(
            answer=json(answer, status=202, headers=ignored),
            resource_id=session.id,
            fields=sent_fields(body),
        )

    return await creating.make(change)


def start(connection: Connection, scope: Scope, body: AdHocRunWrite) -> Session:
    """Queue the run of a check that is not stored.

    Raises:
        NotFoundError: there is no such check as the one whose values are used.
        InvalidError: it names a location, group, snippet or bundle that is not there, or waits for
            pings.
    """
    (write,), place = body.check_run_jobs, body.run_location
    if write.kind is CheckType.HEARTBEAT:
        raise InvalidError(
            "A heartbeat is never run on demand: it waits for pings.", keys=(f"{_JOB}.checkType",)
        )
    known = locations.list_ids_by_slug(connection, scope.account_id)
    if place.slug not in known:
        raise InvalidError(
            f'"runLocation.{place.field}" names no location of this account; use'
            f" {' or '.join(known) or 'one that you create first'}.",
            keys=(f"runLocation.{place.field}",),
        )
    try:
        check = changes.prepare_unstored(
            connection, scope, write, slug=place.slug, like=body.hidden_values_of
        )
    except InvalidError as problem:
        raise _name_in_body(problem) from problem
    test, session_id = _new_test(scope, check), new_id(scope.now_ms)
    session = Session(
        id=session_id,
        check_id=check.id,
        check_type=check.type,
        name=check.name,
        locations=(place.slug,),
        status=SessionStatus.STARTED,
        pending=1,
        started_ms=scope.now_ms,
        stopped_ms=None,
        refresh_cache=body.refresh_cache,
        is_test=True,
        test=TestMember(test_session_id=test.id, logical_id=_ONLY, run_id=session_id),
    )
    store.insert_test(connection, test, [(session, check)])
    wanted = jobs.WantedRuns(
        check_id=check.id,
        location_ids=[known[place.slug]],
        source=RunSource.TEST_RECORD,
        session_id=session.id,
    )
    jobs.add(connection, jobs.runs_of(wanted, check, now_ms=scope.now_ms))
    return session


def _new_test(scope: Scope, check: UnstoredCheck) -> TestSession:
    return TestSession(
        id=new_id(scope.now_ms),
        account_id=scope.account_id,
        name=check.name,
        status=TestStatus.RUNNING,
        checks=1,
        pending=1,
        failed=0,
        started_ms=scope.now_ms,
        stopped_ms=None,
        is_recorded=True,
        suite_id=None,
        metadata={},
    )


def _name_in_body(problem: InvalidError) -> InvalidError:
    """A problem of a check, of which this body has it in a field."""
    message = problem.message
    for key in problem.keys:
        message = message.replace(f'"{key}"', f'"{_JOB}.{key}"')
    return InvalidError(message, keys=tuple(f"{_JOB}.{key}" for key in problem.keys))


SessionId = Annotated[str, Path(alias="testSessionId", pattern=NO_NUL, max_length=200)]
ResultId = Annotated[str, Path(alias="testSessionResultId", pattern=NO_NUL, max_length=200)]


class _Reading:
    """A request about one test session of the caller."""

    def __init__(
        self, session_id: SessionId, request: Request, caller: CallerDep, backend: BackendDep
    ) -> None:
        self.watch = Watch(backend, caller.account_id, session_id, is_test=True)
        self._base_url = backend.base_url(request)

    def answer(self, seen: SessionState) -> Response:
        """The session as its answer."""
        return json(_render_session(seen, base_url=self._base_url))


ReadingDep = Annotated[_Reading, Depends(_Reading)]


@router.get(_ONE, responses=answers(200, AdHocSessionShown, "The session.", 404))
async def read_test_session(reading: ReadingDep) -> Response:
    """Read a test session."""
    return reading.answer(await reading.watch.read())


@router.get(
    _ONE + "/completion",
    responses=answers(200, AdHocSessionShown, "The session, in its final state.", 404, 408),
)
async def await_test_session(
    reading: ReadingDep,
    max_wait_s: Annotated[float, Query(alias="maxWaitSeconds", ge=1, le=_MAX_WAIT_S)] = _MAX_WAIT_S,
) -> Response:
    """Wait until a test session has ended; 408 if it has not ended in time: try again."""
    return reading.answer(await reading.watch.await_end(max_wait_s=max_wait_s))


@router.get(
    _ONE + "/results/{testSessionResultId}",
    responses=answers(200, CheckResultShown, "The result.", 404),
)
async def read_test_session_result(
    result_id: ResultId, reading: ReadingDep, backend: BackendDep
) -> Response:
    """Read a result of a test session."""
    session = (await reading.watch.read()).session
    found = await backend.database.read(lambda c: results.find(c, session.check_id, result_id))
    if found is None or found.session_id != session.id:
        raise NotFoundError(f"There is no result {result_id} of this test session.")
    return json(render(found, name=session.name, check_type=session.check_type))


def _render_session(seen: SessionState, *, base_url: str) -> dict[str, Any]:
    session = seen.session
    until_ms = seen.now_ms if session.stopped_ms is None else session.stopped_ms
    return {
        "testSessionId": session.id,
        "testSessionLink": _link(base_url, session),
        "name": session.name,
        "status": _status(session),
        "startedAt": format_time(session.started_ms),
        "stoppedAt": format_time(session.stopped_ms),
        "timeElapsed": max(0, until_ms - session.started_ms),
        "results": [_render_result(one, session, base_url=base_url) for one in seen.results],
    }


def _status(session: Session) -> AdHocStatus:
    if session.stopped_ms is None:
        return AdHocStatus.RUNNING
    return AdHocStatus.PASSED if session.status in _PASSES else AdHocStatus.FAILED


def _render_result(stored: StoredResult, session: Session, *, base_url: str) -> dict[str, Any]:
    is_bad = stored.status.has_failures or stored.status.has_errors
    return {
        "testSessionResultId": stored.id,
        "testSessionResultLink": f"{_link(base_url, session)}/results/{stored.id}",
        "checkType": session.check_type,
        "name": session.name,
        "runLocation": stored.location,
        "resultType": stored.result_type.value,
        "status": AdHocStatus.FAILED if is_bad else AdHocStatus.PASSED,
        "hasErrors": stored.status.has_errors,
        "hasFailures": stored.status.has_failures,
        "isDegraded": stored.status is RunStatus.DEGRADED,
        "aborted": stored.result_type is ResultType.FINAL and stored.status is RunStatus.MISSED,
    }


def _link(base_url: str, session: Session) -> str:
    return f"{base_url}{_PATH}/{session.id}"
