"""`/checks/{checkId}/trigger/{token}` and its like: run by a link, answer with the verdict."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Path, Query
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from service.audit import audit
from service.audit.model import Entry
from service.checks.unstored import RunTerms
from service.http.auth import refuse_early
from service.http.dependencies import Backend, BackendDep
from service.http.error_responses import body_of
from service.http.errors import (
    NotFoundError,
    RunNotPassedError,
    StillRunningError,
)
from service.http.rate_limits.rate_limit import RateClass, address_of
from service.http.routing import answers, open_operations, operation_id
from service.http.schema import NO_NUL, Text
from service.results.model import ResultType, RunStatus, StoredResult
from service.sessions.ad_hoc.starting import run_elsewhere
from service.sessions.model import Session
from service.sessions.triggers import (
    GroupRun,
    list_checks,
    list_of_group,
    require_no_open_run,
    run_group,
    trigger,
)
from service.sessions.triggers import Target as Wanted
from service.sessions.watching import SessionState, TestWatch, Watch
from service.triggers import triggers
from service.triggers.model import Runs, Target, TriggerRow, VerdictShown
from service.vault.encryption import Scope

router = open_operations("Triggers")

_OF_CHECK: Final = "/checks/{checkId}/trigger/{token}"
_OF_GROUP: Final = "/check-groups/{groupId}/trigger/{token}"
MAX_WAIT_S: Final = 30
_FINAL: Final = ResultType.FINAL
Start = Callable[[Connection, TriggerRow, int], Sequence[Session]]
_FRESH: Final[Mapping[str, str]] = {"cache-control": "no-store"}
_GOOD: Final = frozenset({RunStatus.PASSED, RunStatus.DEGRADED})
_ANSWERS: Final = answers(200, VerdictShown, "It passed.", 400, 404, 408, 503)

CheckId = Annotated[str, Path(alias="checkId", pattern=NO_NUL, max_length=200)]
GroupId = Annotated[int, Path(alias="groupId", ge=1, le=(1 << 63) - 1)]
Token = Annotated[str, Path(pattern=NO_NUL, max_length=200)]


@dataclass(frozen=True, slots=True)
class _Query:
    """What a call says besides its token."""

    place: Annotated[
        Text | None,
        Query(alias="runLocation", description="Slug of a location: run only there."),
    ] = None
    url: Annotated[
        str | None,
        Query(
            alias="environmentUrl",
            description="Run copies of the checks there, which count nowhere and alert nobody.",
        ),
    ] = None


class _LinkCall:
    """A call of a link."""

    def __init__(
        self,
        request: Request,
        backend: BackendDep,
        query: Annotated[_Query, Depends(_Query)],
    ) -> None:
        self.backend: Backend = backend
        self.place = query.place or None
        """Slug. None: everywhere."""
        self._url = query.url
        self._request = request

    @property
    def url(self) -> str | None:
        """Where the checks run instead. None: at their own addresses.

        Raises:
            InvalidError: it is not allowed; says what is, and so to holders of the link alone.
        """
        return self.backend.environment_hosts.read_url(self._url) if self._url else None

    def run_elsewhere(
        self, connection: Connection, row: TriggerRow, check_ids: Sequence[str], now_ms: int
    ) -> Sequence[Session]:
        """Start copies of these checks at the other address."""
        scope = Scope(row.account_id, now_ms, self.backend.vault, self.backend.regions)
        terms = RunTerms(slug=self.place, environment_url=self.url)
        return run_elsewhere(connection, scope, check_ids, terms).sessions

    def noted(self, row: TriggerRow, target: Target, *, now_ms: int) -> Entry:
        """What the audit log keeps of it; whoever called has no key."""
        route = self._request.scope["route"]
        return Entry(
            account_id=row.account_id,
            key_id=None,
            operation=operation_id(route),
            resource=route.path.split("/")[1],
            resource_id=target.owner_id,
            fields=tuple(
                field
                for field, value in (("environmentUrl", self.url), ("runLocation", self.place))
                if value
            ),
            address=address_of(self._request),
            at_ms=now_ms,
        )


CallDep = Annotated[_LinkCall, Depends(_LinkCall)]


@router.get(_OF_CHECK, responses=_ANSWERS)
async def run_check_by_link(check_id: CheckId, token: Token, call: CallDep) -> Response:
    """Run a check now and wait for its end: 200 when it passes, 503 when it does not.

    It needs no key but the token in the address. After 30 seconds the answer is 408, and the run
    goes on. The calls of one trigger are limited to 10 a minute. With `environmentUrl` a copy of
    the check runs at that address; what it brings counts for no check. Other query parameters,
    which tell of a deployment, are passed over.
    """
    target = Target(Runs.CHECK, check_id)
    wanted = Wanted(check_ids=frozenset({check_id}), location=call.place)

    def start(connection: Connection, row: TriggerRow, now_ms: int) -> Sequence[Session]:
        if call.url:
            meant = list_checks(connection, row.account_id, wanted)
            return call.run_elsewhere(connection, row, meant, now_ms)
        return trigger(connection, row.account_id, wanted, now_ms=now_ms)

    return await _run(call, target, token, start=start)


@router.get(
    _OF_GROUP, responses=answers(200, VerdictShown, "Everything passed.", 400, 404, 408, 409, 503)
)
async def run_group_by_link(group_id: GroupId, token: Token, call: CallDep) -> Response:
    """Run a check group now and wait for its end: 200 when all of its checks pass, 503 otherwise.

    As with the link of a check; checks that do not run at `runLocation` are left out. While a run
    of the group goes on, the answer is 409, and no other one begins. With `environmentUrl` copies
    of all checks run at once at that address.
    """
    target, wanted = (
        Target(Runs.GROUP, str(group_id)),
        GroupRun(group_id=group_id, location=call.place),
    )

    def start(connection: Connection, row: TriggerRow, now_ms: int) -> Sequence[Session]:
        if call.url:
            members = list_of_group(connection, row.account_id, group_id)
            return call.run_elsewhere(connection, row, members, now_ms)
        require_no_open_run(connection, row.account_id, group_id)
        return run_group(connection, row.account_id, wanted, now_ms=now_ms)

    return await _run(call, target, token, start=start)


async def _run(call: _LinkCall, target: Target, token: str, *, start: Start) -> Response:
    """Open the trigger, start what it runs, wait for the end of all of it."""
    backend = call.backend
    row = await _find_trigger(backend, target, token)

    def change(connection: Connection) -> Sequence[Session]:
        now_ms = backend.clock.now_ms(connection)
        triggers.note_call(connection, row, now_ms=now_ms)
        started = start(connection, row, now_ms)
        audit.record(connection, call.noted(row, target, now_ms=now_ms))
        return started

    sessions = await backend.database.write(change)
    until_s = backend.monotonic() + MAX_WAIT_S
    if sessions[0].test:
        return _render_verdict(await _await_copies(backend, row, sessions[0].test.test_session_id))
    return _render_verdict(
        [await _await_end(backend, row, one, until_s=until_s) for one in sessions]
    )


async def _await_copies(backend: Backend, row: TriggerRow, test_id: str) -> list[SessionState]:
    """The sessions of copies at their end.

    Raises:
        StillRunningError: they have not all ended in time.
    """
    try:
        seen = await TestWatch(backend, row.account_id, test_id).await_end(max_wait_s=MAX_WAIT_S)
    except StillRunningError as problem:
        raise StillRunningError(
            f"The run has not ended within {MAX_WAIT_S} s, and continues as test session {test_id};"
            " the link would start another one.",
            attributes={"testSessionId": test_id},
        ) from problem
    return [
        SessionState(
            member,
            tuple(one for one in seen.results if one.session_id == member.id),
            seen.now_ms,
        )
        for member in seen.members
    ]


async def _await_end(
    backend: Backend, row: TriggerRow, started: Session, *, until_s: float
) -> SessionState:
    """A session at its end.

    Raises:
        StillRunningError: it has not ended in time; nobody looks at the others any more.
    """
    left_s = max(0.0, until_s - backend.monotonic())
    seen = await Watch(backend, row.account_id, started.id).wait(max_wait_s=left_s)
    if seen.is_over:
        return seen
    raise StillRunningError(
        f"The run has not ended within {MAX_WAIT_S} s, and continues as session {started.id}; the"
        " check's link would start another run.",
        attributes={"checkSessionId": started.id},
    )


async def _find_trigger(backend: Backend, target: Target, token: str) -> TriggerRow:
    """The trigger of a link.

    Raises:
        NotFoundError: there is none, or the token is not its own; which of them is not said.
        TooManyError: it was called too often.
    """
    pepper = backend.pepper
    row = await backend.database.read(
        lambda c: triggers.find_by_token(c, target, token=token, pepper=pepper)
    )
    if row is None:
        raise NotFoundError("There is no such trigger.")
    refuse_early(backend.limits.wait_s(RateClass.TRIGGER_LINKS, str(row.id)))
    return row


def _render_verdict(seen: Sequence[SessionState]) -> Response:
    finals = [[one for one in each.results if one.result_type is _FINAL] for each in seen]
    facts = VerdictShown(
        has_failures=any(one.status.has_failures for each in finals for one in each),
        response_time=_longest_ms(one for each in finals for one in each),
    ).model_dump()
    bad = [
        (each.session, why)
        for each, own in zip(seen, finals, strict=True)
        if (why := _failure_reason(each.session, own))
    ]
    if not bad:
        return JSONResponse(facts, headers=dict(_FRESH))
    first = dict([_name_of(bad[0][0])])
    refusal = RunNotPassedError(" ".join(why for _, why in bad), attributes=first)
    return JSONResponse({**body_of(refusal), **facts}, status_code=503, headers=dict(_FRESH))


def _name_of(session: Session) -> tuple[str, str]:
    """Where the API shows a session: the field that names it, and its id."""
    if session.test:
        return "testSessionId", session.test.test_session_id
    return "checkSessionId", session.id


def _longest_ms(finals: Iterable[StoredResult]) -> int | None:
    times = [one.response_time_ms for one in finals if one.response_time_ms is not None]
    return math.floor(max(times)) if times else None


def _failure_reason(session: Session, finals: Sequence[StoredResult]) -> str:
    """Why a check did not pass; empty: it did."""
    if finals and all(one.status in _GOOD for one in finals):
        return ""
    bad = ", ".join(
        f"{one.status.value} at {one.location}" for one in finals if one.status not in _GOOD
    )
    why = bad or "no agent ran it"
    return f"The check {session.name} did not pass: {why} (session {_name_of(session)[1]})."
