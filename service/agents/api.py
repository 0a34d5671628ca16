"""The agents' routes: plain Starlette and msgspec, because a fleet calls them all the time."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple, TypeVar

import msgspec
import structlog
from sqlalchemy import Connection
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive

from contract import agent_api as wire
from contract.agent_api import AGENT_ID_HEADER, ReleaseReason
from contract.wire import Wire, encode
from service.agents import actions
from service.agents.artifacts import ArtifactDoor
from service.agents.location_keys import LocationKeys, digest_of
from service.agents.messages import (
    LIMIT_BYTES,
    TooOldError,
    answer_submission,
    read_message,
    read_result,
)
from service.agents.model import Opened
from service.agents.presence import MIN_AGENT_VERSION, Presence, is_too_old
from service.agents.submissions import Submissions
from service.bundles.api import BundleDownloads
from service.clock import Clock
from service.db.engine import Database
from service.heartbeats.actions import ReceivedPing, take_pings
from service.http.auth import refuse_early
from service.http.errors import InvalidError, LocationKeyError
from service.http.performance.fast_path import EncodedJson
from service.http.rate_limits.rate_limit import RateClass, RateLimits, place_of
from service.jobs import actions as jobs
from service.jobs.long_poll import Caller, ClaimQueue
from service.jobs.model import LEASE_MS, Claimant, fence_number, job_number
from service.jobs.settle import Release, release
from service.jobs.unnamed_leases import UnnamedLeases
from service.results.ingest import Arrived

log = structlog.get_logger()

MessageT = TypeVar("MessageT", bound=msgspec.Struct)

MOST_LETTERS: Final = 100
"""How long the name of an agent or a claim may be."""
_AGENT_ID: Final = AGENT_ID_HEADER.encode()


class AgentRequest(NamedTuple):
    """A request of an agent whose key is valid."""

    headers: Mapping[bytes, bytes]
    receive: Receive
    digest: bytes
    """SHA-256 of its key."""
    opened: Opened
    keys: LocationKeys

    @property
    def location_id(self) -> str:
        """The location that the agent speaks for."""
        return self.opened.location_id

    def agent_id(self) -> str:
        """What the agent calls itself.

        Raises:
            InvalidError: nothing, or much too long.
        """
        agent_id = self.headers.get(_AGENT_ID, b"").decode("latin-1")
        check_name(agent_id)
        return agent_id

    async def read(self, kind: type[MessageT], *, limit_bytes: int = LIMIT_BYTES) -> MessageT:
        """The body as one message.

        Raises:
            LocationKeyError: the key ended while the body came.
        """
        encoding = self.headers.get(b"content-encoding")
        message = await read_message(self.receive, kind, encoding=encoding, limit_bytes=limit_bytes)
        await self._require_valid_key()
        return message

    async def receive_while_open(self) -> Message:
        """The next part of a body that may take minutes to come.

        Raises:
            LocationKeyError: the key ended while it came.
        """
        message = await self.receive()
        await self._require_valid_key()
        return message

    async def _require_valid_key(self) -> None:
        if await self.keys.opened_with(self.digest) is None:
            raise LocationKeyError


def check_name(name: str, field: str = AGENT_ID_HEADER) -> None:
    """Refuse a name that is empty or too long."""
    if not 0 < len(name) <= MOST_LETTERS:
        raise InvalidError(
            f'"{field}" has {len(name)} characters; use 1 to {MOST_LETTERS}.',
            keys=(field,),
            source="headers" if field == AGENT_ID_HEADER else "payload",
        )


_MOST_SLOTS: Final = 10_000
_MOST_ITEMS: Final = 10_000
_MOST_EVENTS: Final = 100
_PAUSE_WHEN_CLOSING_S: Final = 1.0
_BODY_SLACK_BYTES: Final = 64 * 1024
"""Room for what stands around the results of a submission."""


class _RawSubmission(Wire, frozen=True, kw_only=True):
    """A submission whose results are read one by one, so that a bad one spoils no other."""

    results: Annotated[tuple[msgspec.Raw, ...], msgspec.Meta(max_length=wire.MAX_RESULTS)]


@dataclass(frozen=True, slots=True)
class AgentApi:
    """The agent API's routes and what they are made of."""

    database: Database
    clock: Clock
    keys: LocationKeys
    limits: RateLimits
    presence: Presence
    claim_queue: ClaimQueue
    submissions: Submissions
    unnamed: UnnamedLeases
    artifacts: ArtifactDoor
    bundles: BundleDownloads
    claimed: Callable[[int], None]
    """Called with the number of jobs that each claim got."""

    def message_routes(self) -> list[Route]:
        """The routes that receive a message and answer with one."""
        handlers: dict[str, Callable[[AgentRequest], Awaitable[msgspec.Struct]]] = {
            wire.CLAIM: self._claim,
            wire.RESULTS: self._results,
            wire.RENEW: self._renew,
            wire.RELEASE: self._release,
            wire.HELLO: self._hello,
            wire.PINGS: self._pings,
            wire.EVENTS: self._events,
        }
        return [
            Route(path, self._messages(call), methods=["POST"]) for path, call in handlers.items()
        ]

    def file_routes(self) -> list[Route]:
        """The routes by which agents upload artifacts and download bundles."""
        one = f"{wire.ARTIFACTS}/{{job_id}}/{{name}}"
        return [
            Route(one, self._files(self.artifacts.put), methods=["PUT"]),
            Route(f"{one}/link", self._files(self.artifacts.link), methods=["POST"]),
            Route(f"{one}/stored", self._files(self.artifacts.confirm), methods=["POST"]),
            Route(f"{wire.BUNDLES}/{{sha256}}", self._files(self.bundles.get), methods=["GET"]),
        ]

    def _messages(
        self, answer_to: Callable[[AgentRequest], Awaitable[msgspec.Struct]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            call = await self._authenticate(request)
            try:
                return EncodedJson(encode(await answer_to(call)))
            except ClientDisconnect:
                return Response(status_code=400)  # nobody reads it

        return serve

    def _files(
        self, call: Callable[[Request, str], Awaitable[msgspec.Struct | Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            caller = await self._authenticate(request)
            guarded = Request(request.scope, caller.receive_while_open)
            try:
                answer = await call(guarded, caller.location_id)
            except ClientDisconnect:
                return Response(status_code=400)  # nobody reads it
            return answer if isinstance(answer, Response) else EncodedJson(encode(answer))

        return serve

    async def _authenticate(self, request: Request) -> AgentRequest:
        # Read once: to look one up among the server's pairs takes as long as to read them all.
        # Of two alike the first counts, as everywhere else; a proxy may have looked at that one.
        headers = dict(reversed(request.scope["headers"]))
        scheme, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        digest = digest_of(key) if scheme.lower() == "bearer" else None
        opened = None if digest is None else await self.keys.opened_with(digest)
        if digest is None or opened is None:
            refuse_early(self.limits.wait_s(RateClass.REFUSED, place_of(request)))
            raise LocationKeyError
        if wait_s := self.limits.wait_s(RateClass.AGENTS, opened.key_id):
            refuse_early(wait_s)
        return AgentRequest(headers, request.receive, digest, opened, self.keys)

    async def _hello(self, call: AgentRequest) -> wire.HelloAnswer:
        hello = await call.read(wire.Hello)
        if is_too_old(hello.version):
            raise TooOldError(
                f"This agent is version {hello.version[:50]}; use {MIN_AGENT_VERSION} or later.",
                attributes={"minAgentVersion": MIN_AGENT_VERSION},
            )
        check_name(hello.agent_id)
        check_name(hello.version, "version")
        check_name(hello.platform, "platform")

        def change(connection: Connection) -> wire.LocationInfo:
            now_ms = self.clock.now_ms(connection)
            return actions.say_hello(connection, call.opened, hello, now_ms=now_ms)

        location = await self.database.write(change)
        self.presence.introduce((call.location_id, hello.agent_id))
        return wire.HelloAnswer(
            location=location,
            lease_s={lane: lease_ms / 1000 for lane, lease_ms in LEASE_MS.items()},
            min_agent_version=MIN_AGENT_VERSION,
        )

    async def _claim(self, call: AgentRequest) -> wire.ClaimAnswer:
        agent_id = call.agent_id()
        is_known = await self.presence.meet((call.location_id, agent_id))
        # The last wait before the queue, which hears of keys that end from here on.
        claim = await call.read(wire.Claim)
        if not is_known:
            return wire.ClaimAnswer(say_hello=True)
        check_name(claim.claim_id, "claimId")
        claimant = Claimant(
            # A claim's id is its agent's business; ours keeps agents apart.
            f"{agent_id}/{claim.claim_id}",
            agent_id,
            {lane: min(slots, _MOST_SLOTS) for lane, slots in claim.slots.items()},
            frozenset(claim.check_types),
            repeated=False,
            oldest_ping_s=claim.oldest_ping_s,
        )
        caller = Caller(call.receive)
        jobs_of_claim = await self.claim_queue.claim(
            call.location_id, claimant, wait_s=claim.wait_s, caller=caller
        )
        self.claimed(len(jobs_of_claim))
        return wire.ClaimAnswer(
            jobs=tuple(msgspec.Raw(job) for job in jobs_of_claim),
            next_poll_s=_PAUSE_WHEN_CLOSING_S if self.claim_queue.is_closed else 0,
        )

    async def _renew(self, call: AgentRequest) -> wire.RenewAnswer:
        renew = await call.read(wire.Renew)
        _check_items(renew.leases, "leases", _MOST_ITEMS)
        await self.presence.meet((call.location_id, call.agent_id()))
        leases = [(job_number(one.job_id), fence_number(one.fence)) for one in renew.leases]

        def change(connection: Connection) -> list[bool]:
            now_ms = self.clock.now_ms(connection)
            return jobs.renew(connection, call.location_id, leases, now_ms=now_ms)

        held = await self.database.write(change)
        if renew.is_complete:
            await self._take_back_unnamed(call, frozenset(leases))
        lost = (lease for lease, holds in zip(renew.leases, held, strict=True) if not holds)
        return wire.RenewAnswer(lost=tuple(lost))

    async def _take_back_unnamed(
        self, call: AgentRequest, named: frozenset[tuple[int, int]]
    ) -> None:
        """Requeue the jobs that two complete renewals of their agent left out."""
        who = call.location_id, call.agent_id()
        held = await self.database.read(lambda c: jobs.find_leased_to(c, *who))
        unnamed = self.unnamed.note(who, held=held, named=named)
        if not unnamed:
            return
        given = [Release(*lease, ReleaseReason.DRAINING) for lease in unnamed]
        log.info("leases.taken_back", location_id=who[0], agent_id=who[1], jobs=len(given))

        def change(connection: Connection) -> None:
            now_ms = self.clock.now_ms(connection)
            release(connection, given, location_id=call.location_id, now_ms=now_ms)

        await self.database.write(change)

    async def _release(self, call: AgentRequest) -> Wire:
        message = await call.read(wire.Release)
        _check_items(message.jobs, "jobs", _MOST_ITEMS)
        given = [Release(job_number(job.job_id), job.fence, job.reason) for job in message.jobs]

        def change(connection: Connection) -> None:
            now_ms = self.clock.now_ms(connection)
            release(connection, given, location_id=call.location_id, now_ms=now_ms)

        await self.database.write(change)
        return Wire()

    async def _results(self, call: AgentRequest) -> wire.SubmissionAnswer:
        limit_bytes = wire.MAX_RESULTS_BYTES + _BODY_SLACK_BYTES
        raw = await call.read(_RawSubmission, limit_bytes=limit_bytes)
        read = [read_result(place, bytes(body)) for place, body in enumerate(raw.results)]
        arrived = [one for one in read if isinstance(one, Arrived)]
        rejected = [one for one in read if isinstance(one, wire.Rejected)]
        verdicts = await self.submissions.take(call.location_id, arrived) if arrived else []
        return answer_submission(arrived, verdicts, rejected)

    async def _pings(self, call: AgentRequest) -> Wire:
        message = await call.read(wire.Pings)
        _check_items(message.pings, "pings", _MOST_ITEMS)
        pings = [
            ReceivedPing(
                # A ping's id is its agent's business; ours keeps locations apart.
                ping_id=f"{call.location_id}/{ping.ping_id[:MOST_LETTERS]}",
                token=ping.token,
                age_s=ping.age_s,
                method=ping.method,
                source=ping.source,
                user_agent=ping.user_agent,
            )
            for ping in message.pings
        ]

        def change(connection: Connection) -> None:
            take_pings(connection, pings, now_ms=self.clock.now_ms(connection))

        await self.database.write(change)
        return Wire()

    async def _events(self, call: AgentRequest) -> Wire:
        message = await call.read(wire.Events)
        agent_id = call.agent_id()

        def change(connection: Connection) -> None:
            actions.take_events(
                connection,
                message.events[:_MOST_EVENTS],
                location_id=call.location_id,
                agent_id=agent_id,
                now_ms=self.clock.now_ms(connection),
            )

        await self.database.write(change)
        return Wire()


def _check_items(items: Sequence[object], field: str, most: int) -> None:
    if len(items) > most:
        raise InvalidError(f"$.{field} has {len(items)} items; use at most {most}.", keys=(field,))
