"""`/v1/test-sessions`: run checks once that are not stored.

Their runs alert nobody and count in no analytics; their results are kept as long as others are.
"""

from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import Body, Depends, Path, Query
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from service.checks import actions as checks
from service.checks.types.url import URL
from service.checks.views import render as render_check
from service.db.ids import time_of
from service.http.auth import CallerDep
from service.http.dependencies import Backend, BackendDep
from service.http.errors import InvalidError, NotFoundError
from service.http.mutations import Changed, CreateDep, sent_fields
from service.http.routing import answers, json, keyed_operations, refusals
from service.http.schema import NO_NUL, Text
from service.results import actions as results
from service.results import assets
from service.results.api import answer_asset
from service.results.model import ResultType, StoredResult
from service.results.shapes import AssetsShown, CheckResultShown, LogLineShown
from service.results.views import render, render_log
from service.sessions import actions
from service.sessions.ad_hoc.schemas import (
    AdHocRunWrite,
    AdHocSessionsShown,
    AdHocSessionWithResults,
    AdHocStarted,
    AdHocTriggerWrite,
    CancelWrite,
    ResultLinks,
    SchedulingShown,
    SessionLink,
    TriggeredTests,
)
from service.sessions.ad_hoc.starting import StartedTests, cancel, start, trigger
from service.sessions.ad_hoc.views import (
    PATH,
    files_path_of,
    link_of,
    render_entry,
    render_links,
    render_scheduling,
    render_state,
)
from service.sessions.ad_hoc.written_snapshots import find_run
from service.sessions.model import Session, TestSession, TestStatus
from service.sessions.watching import TestWatch
from service.vault.encryption import Scope, Viewer

LARGE_PATHS: Final = frozenset({f"{PATH}/run", "/next/test-sessions/run"})
"""Bodies of these paths hold the scripts of many checks."""
_MAX_WAIT_S: Final = 30
_ONE: Final = "/{testSessionId}"
_RESULT: Final = _ONE + "/results/{testSessionResultId}"
_EXAMPLE: Final[dict[str, Any]] = {
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
}
_STARTED: Final = answers(202, AdHocStarted, "What was started.", 404)

router = keyed_operations("Test sessions", prefix=PATH)
clients_router = keyed_operations("Test sessions", prefix="/next/test-sessions")
"""What the established service's own clients ask there."""
logs_router = keyed_operations("Test sessions", prefix="/next/assets")
"""Where they ask for the log of a run whose result names files."""

SessionId = Annotated[str, Path(alias="testSessionId", pattern=NO_NUL, max_length=200)]
ResultId = Annotated[str, Path(alias="testSessionResultId", pattern=NO_NUL, max_length=200)]
MaxWait = Annotated[float, Query(alias="maxWaitSeconds", ge=1, le=_MAX_WAIT_S)]


@router.post("/run", status_code=202, responses=_STARTED, openapi_extra=_EXAMPLE)
async def run_test_session(body: Annotated[AdHocRunWrite, Body()], creating: CreateDep) -> Response:
    """Run checks once that are not stored. They alert nobody and count in no analytics.

    A location or region at which nothing runs is refused with those that there are.
    """
    return await _run(body, creating)


@clients_router.post("/run", status_code=202, responses=_STARTED, openapi_extra=_EXAMPLE)
async def run_test_session_for_clients(
    body: Annotated[AdHocRunWrite, Body()], creating: CreateDep
) -> Response:
    """Run checks once that are not stored, as `POST /v1/test-sessions/run`."""
    return await _run(body, creating)


async def _run(body: AdHocRunWrite, creating: CreateDep) -> Response:
    base_url, ignored = creating.base_url, await creating.ignored_fields(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        started = start(connection, scope, body)
        told = {"testSessionLink": link_of(base_url, started.test.id), **_name(started)}
        if not started.test.is_recorded:
            told = {}
        ids = {"schedulingId": started.test.id, "sequenceIds": started.sequence_ids}
        return Changed(
            answer=json({**ids, **told}, status=202, headers=ignored),
            resource_id=started.test.id,
            fields=sent_fields(body),
        )

    return await creating.make(change)


def _name(started: StartedTests) -> dict[str, Any]:
    """The ids of a session and of its results, by what the client calls the checks."""
    return {"testSessionId": started.test.id, "testResultIds": started.sequence_ids}


@clients_router.post(
    "/trigger", responses=answers(200, TriggeredTests, "What was started.", 403, 404)
)
async def trigger_test_session(
    body: Annotated[AdHocTriggerWrite, Body()], creating: CreateDep
) -> Response:
    """Run copies of stored checks once, elsewhere and with other variables if wanted.

    Unlike runs of check sessions they alert nobody and count nowhere. If nothing matches, the
    answer is 403 with `errorCode` `ERR_NO_MATCHING_CHECKS`, as clients expect it.
    """
    base_url, vault = creating.base_url, creating.backend.vault
    ignored = await creating.ignored_fields(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        started = trigger(connection, scope, body)
        rows = [
            checks.find(connection, scope.account_id, check_id) for check_id in started.sequence_ids
        ]
        shown = [
            render_check(row, base_url=base_url, viewer=Viewer.writer(vault).hiding)
            for row in checks.complete(connection, rows)
        ]
        named = _name(started) if started.test.is_recorded else dict.fromkeys(_name(started))
        answer = {"checks": shown, **named, "sequenceIds": started.sequence_ids}
        return Changed(
            answer=json(answer, headers=ignored),
            resource_id=started.test.id,
            fields=sent_fields(body),
        )

    return await creating.make(change)


@router.get(
    "/scheduling/{schedulingId}/completion",
    responses=answers(200, SchedulingShown, "The runs wait in the queue.", 404),
)
async def await_scheduling(
    scheduling_id: Annotated[str, Path(alias="schedulingId", pattern=NO_NUL, max_length=200)],
    caller: CallerDep,
    backend: BackendDep,
    _max_wait_s: MaxWait = _MAX_WAIT_S,
) -> Response:
    """Wait until the runs of a session are handed out, which they are when it exists."""

    def query(connection: Connection) -> TestSession:
        return actions.find_test(connection, caller.account_id, scheduling_id)

    return json(render_scheduling(await backend.database.read(query)))


def _read_cursor(
    next_id: Annotated[
        Text | None,
        Query(alias="nextId", max_length=200, description="From the previous answer."),
    ] = None,
) -> str | None:
    if next_id and time_of(next_id) is None:
        raise InvalidError(
            '"nextId" is not from an answer; send the one from the previous answer.',
            keys=("nextId",),
            source="query",
        )
    return next_id or None


@router.get("", responses=answers(200, AdHocSessionsShown, "Newest first."))
async def list_test_sessions(  # noqa: PLR0913 - what FastAPI hands in
    request: Request,
    caller: CallerDep,
    backend: BackendDep,
    after_id: Annotated[str | None, Depends(_read_cursor)],
    *,
    limit: Annotated[int, Query(ge=1, le=100, description="Sessions in an answer.")] = 10,
    statuses: Annotated[
        list[TestStatus], Query(description="Only of these; repeat it for several.")
    ] = [],  # noqa: B006 - FastAPI copies defaults
) -> Response:
    """List recorded test sessions after those of the previous answer."""
    base_url = backend.base_url(request)

    def query(connection: Connection) -> tuple[list[dict[str, Any]], bool]:
        wanted = frozenset(statuses)
        found = actions.list_tests(
            connection, caller.account_id, statuses=wanted, after_id=after_id, limit=limit + 1
        )
        some, now_ms = found[:limit], backend.clock.now_ms(connection)
        states = actions.list_states(connection, some)
        entries = [
            render_entry(one, states[one.id], base_url=base_url, now_ms=now_ms) for one in some
        ]
        return entries, len(found) > limit

    entries, has_more = await backend.database.read(query)
    next_id = entries[-1]["id"] if has_more else None
    return json({"length": len(entries), "entries": entries, "nextId": next_id})


class _Reading:
    """A request about one test session of the caller."""

    def __init__(
        self, session_id: SessionId, request: Request, caller: CallerDep, backend: BackendDep
    ) -> None:
        self.account_id: str = caller.account_id
        self.backend: Backend = backend
        self.watch = TestWatch(backend, caller.account_id, session_id)
        self.base_url = backend.base_url(request)

    async def find_result(self, result_id: str) -> tuple[Session, StoredResult]:
        """A result by its own id, or by that of its check's session, which the run's answer has.

        Raises:
            NotFoundError: the session has none with this id, or not yet.
        """
        seen = await self.watch.read()
        listed = [one for one in seen.results if result_id in (one.id, one.session_id)]
        finals = [one for one in listed if one.result_type is ResultType.FINAL]
        for one in (*finals, *listed):
            session = next(each for each in seen.members if each.id == one.session_id)
            check_id, known = session.check_id, one.id

            def query(
                connection: Connection, check_id: str = check_id, known: str = known
            ) -> StoredResult | None:
                return results.find(connection, check_id, known)

            if found := await self.backend.database.read(query):
                return session, found
        raise NotFoundError(f"There is no result {result_id} of this test session.")

    async def find_assets(self, result_id: str) -> tuple[assets.Asset, ...]:
        """The files that a result names.

        Raises:
            NotFoundError: the session has no such result.
        """
        _, stored = await self.find_result(result_id)
        return await self.list_assets(stored)

    async def list_assets(self, stored: StoredResult) -> tuple[assets.Asset, ...]:
        """The files of a result that was found."""
        return await self.backend.database.read(
            lambda c: assets.assets_of(c, self.account_id, stored)
        )


ReadingDep = Annotated[_Reading, Depends(_Reading)]


@router.get(_ONE, responses=answers(200, AdHocSessionWithResults, "The session.", 404))
async def read_test_session(reading: ReadingDep) -> Response:
    """Read a test session."""
    return json(render_state(await reading.watch.read(), base_url=reading.base_url))


@router.get(
    _ONE + "/completion",
    responses=answers(200, AdHocSessionWithResults, "The session, in its final state.", 404, 408),
)
async def await_test_session(reading: ReadingDep, max_wait_s: MaxWait = _MAX_WAIT_S) -> Response:
    """Wait until a test session has ended; 408 if it has not ended in time: try again."""
    ended = await reading.watch.await_end(max_wait_s=max_wait_s)
    return json(render_state(ended, base_url=reading.base_url))


@router.post(
    _ONE + "/cancel",
    responses=answers(200, AdHocSessionWithResults, "The session.", 403, 404),
)
async def cancel_test_session(
    session_id: SessionId,
    reading: ReadingDep,
    creating: CreateDep,
    body: Annotated[CancelWrite | None, Body()] = None,
) -> Response:
    """Cancel a test session, or one of its checks; one that has ended is refused with 403.

    Runs that wait are dropped, and agents are told to stop those that go on.
    """
    sequence_id = body.sequence_id if body else None

    def change(connection: Connection, scope: Scope) -> Changed:
        test = cancel(connection, scope, session_id, sequence_id=sequence_id)
        state = reading.watch.load(connection)
        answer = json(render_state(state, base_url=reading.base_url))
        return Changed(answer=answer, resource_id=test.id)

    return await creating.make(change)


@router.get(_RESULT, responses=answers(200, CheckResultShown, "The result.", 404))
async def read_test_session_result(result_id: ResultId, reading: ReadingDep) -> Response:
    """Read a result of a test session, by its id or by that of its check's session."""
    session, found = await reading.find_result(result_id)
    files_at = files_path_of(reading.watch.test_id, found.id)
    kind = session.check_type
    return json(render(found, name=session.name, check_type=kind, files_at=files_at))


@router.get(
    _RESULT + "/assets", responses=answers(200, AssetsShown, "The files of the result.", 404)
)
async def list_test_session_assets(
    session_id: SessionId, result_id: ResultId, reading: ReadingDep
) -> Response:
    """List the files of a result of a test session."""
    found = await reading.find_assets(result_id)
    kept = await assets.list_kept(reading.backend.artifacts, found)
    folder = reading.base_url + files_path_of(session_id, result_id)
    listed = [
        assets.render(one, url=f"{folder}/{quote(one.artifact.name)}", is_kept=one.file.key in kept)
        for one in found
    ]
    counts = {"entriesReturned": len(listed), "entriesTotal": len(listed)}
    return json({"assets": listed, "truncated": False, **counts})


@router.get(
    _RESULT + "/assets/{name}",
    response_class=Response,
    responses={
        200: {"description": "The file, or a part of it.", "content": {"*/*": {}}},
        307: {"description": "A signed link to the file, where the service gives such links."},
        **refusals(404),
    },
)
async def read_test_session_asset(
    name: Annotated[str, Path(pattern=NO_NUL, max_length=200)],
    result_id: ResultId,
    request: Request,
    reading: ReadingDep,
) -> Response:
    """Read a file of a result of a test session."""
    asset = assets.find_asset(await reading.find_assets(result_id), name)
    return await answer_asset(request, reading.backend.artifacts, asset)


@clients_router.get(_ONE + "/link", responses=answers(200, SessionLink, "The address.", 404))
async def read_test_session_link(reading: ReadingDep) -> Response:
    """Read where people see a test session."""
    seen = await reading.watch.read()
    return json({"link": link_of(reading.base_url, seen.test.id)})


@clients_router.get(_RESULT + "/links", responses=answers(200, ResultLinks, "The addresses.", 404))
async def read_test_session_result_links(result_id: ResultId, reading: ReadingDep) -> Response:
    """Read where people see a result of a test session and its files, once signed in.

    An attempt that was retried has no links to files of its own.
    """
    session, found = await reading.find_result(result_id)
    artifacts = [one.artifact for one in await reading.list_assets(found)]
    return json(render_links(reading.base_url, session, found, artifacts))


@logs_router.get(
    "/log/{sequenceId}/{testSessionResultId}",
    responses=answers(200, list[LogLineShown], "The lines, the oldest first.", 404),
)
async def read_test_session_log(
    sequence_id: Annotated[str, Path(alias="sequenceId", pattern=NO_NUL, max_length=200)],
    result_id: ResultId,
    caller: CallerDep,
    backend: BackendDep,
) -> Response:
    """Read the log of a run of a test session, where clients ask for it if it wrote snapshots."""
    stored = await backend.database.read(
        lambda c: find_run(c, caller.account_id, sequence_id, result_id)
    )
    outcome = stored.detail.outcome if stored.detail else None
    return json(render_log(outcome, stored.started_ms) if outcome else [])
