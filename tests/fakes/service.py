"""The service as agents see it: the whole agent API in memory, on a real socket."""

import asyncio
import hashlib
import socket
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self, TypeVar

import msgspec
from aiohttp import web

from contract import agent_api as api
from contract.checks import Lane
from contract.job import Job
from contract.result import Result
from contract.wire import decode, encode
from tests.builders.patience import LONG_S
from tests.fakes.service_book import Book
from tests.servers.tcp import shared_port

KEY = "pl_fake_key_of_the_test_location"
MessageT = TypeVar("MessageT", bound=msgspec.Struct)
Route = Callable[[web.Request], Awaitable[bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong with one request."""

    status: int | None = None
    """Answer with this instead. None: the request is served."""
    delay_s: float = 0
    """Wait this long before doing anything."""
    cut: Literal["before", "after"] | None = None
    """Cut the connection before or after the request took effect. None: answer it."""
    retry_after: str | None = None
    """None: no such header."""
    message: str = "scripted fault"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request as it came in."""

    call: str
    """The last part of its path."""
    headers: dict[str, str]
    """Lower-case names."""
    length: int


@dataclass(slots=True)
class FakeService:
    """Use as `async with FakeService() as service`, give the agent `service.url`."""

    key: str = KEY
    book: Book = field(default_factory=Book)
    proxy_url: str | None = None
    min_agent_version: str = "0.0.0"
    limits: api.Limits = field(default_factory=api.Limits)
    next_poll_s: float = 0
    knows_agents: bool = True
    """False: claims are answered with `sayHello` until the agent says hello again."""
    seen: list[Seen] = field(default_factory=list)
    hellos: list[api.Hello] = field(default_factory=list)
    claims: list[api.Claim] = field(default_factory=list)
    renewals: list[api.Renew] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    """Sizes of the submissions."""
    pings: dict[str, api.Ping] = field(default_factory=dict)
    events: list[api.ErrorEvent] = field(default_factory=list)
    artifacts: dict[str, bytes] = field(default_factory=dict)
    _script: dict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))
    _always: dict[str, Fault] = field(default_factory=dict)
    _answers: dict[str, bytes] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _runner: web.AppRunner | None = None
    _reserve: socket.socket = field(default_factory=shared_port)
    """Bound and never listening: it keeps the port ours while the service is down."""

    async def __aenter__(self) -> Self:
        await self.up()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.down()
        self._reserve.close()

    @property
    def url(self) -> str:
        """What goes into `SERVICE_URL`."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def results(self) -> list[Result]:
        """The results that count, in order of arrival."""
        return list(self.book.results.values())

    @property
    def released(self) -> list[api.Released]:
        """Every job that an agent gave back."""
        return self.book.released

    async def up(self) -> None:
        """Listen; after `down`, at the same address."""
        # A poll whose agent has hung up must not lease jobs to nobody.
        runner = web.AppRunner(
            self._application(), access_log=None, shutdown_timeout=0.05, handler_cancellation=True
        )
        await runner.setup()
        await web.SockSite(runner, shared_port(self._port)).start()
        self._runner = runner

    async def down(self) -> None:
        """Close the door and every connection; what is known stays known."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def _port(self) -> int:
        return int(self._reserve.getsockname()[1])

    def offer(self, *jobs: Job) -> None:
        """Queue jobs and answer the claims that wait for them."""
        for job in jobs:
            self.book.offer(job)
        self.changed()

    def offer_raw(self, raw: bytes, *, job_id: str, on: Lane = Lane.UPTIME) -> None:
        """Queue bytes that stand for a job; `"@fence"` in them becomes its fence."""
        self.book.offer_raw(raw, job_id=job_id, on=on)
        self.changed()

    def fail(self, call: str, *faults: Fault) -> None:
        """The next requests to this call meet these faults, one each."""
        self._script[call].extend(faults)

    def fail_always(self, call: str, fault: Fault) -> None:
        """Every request to this call meets the fault, until `heal`."""
        self._always[call] = fault

    def heal(self) -> None:
        """No more faults."""
        self._always.clear()
        self._script.clear()

    def changed(self) -> None:
        """Wake whoever waits for something to happen."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, holds: Callable[[], bool], *, timeout_s: float = LONG_S) -> None:
        """Wait until something holds; it is looked at after every request and now and then."""
        async with asyncio.timeout(timeout_s):
            while not holds():
                await self._wait(0.05)

    def calls(self, call: str) -> int:
        """How many requests came to this call."""
        return sum(seen.call == call for seen in self.seen)

    async def _wait(self, limit_s: float) -> None:
        try:
            await asyncio.wait_for(self._changed.wait(), limit_s)
        except TimeoutError:
            return

    def _application(self) -> web.Application:
        app = web.Application(client_max_size=2 * api.MAX_RESULTS_BYTES)
        routes: dict[str, Route] = {
            api.HELLO: self._hello,
            api.CLAIM: self._claim,
            api.RENEW: self._renew,
            api.RELEASE: self._release,
            api.RESULTS: self._results,
            api.PINGS: self._pings,
            api.EVENTS: self._events,
        }
        for path, route in routes.items():
            app.router.add_post(path, self._guarded(path.rsplit("/", 1)[1], route))
        artifact = f"{api.ARTIFACTS}/{{job}}/{{name}}"
        app.router.add_put(artifact, self._guarded("artifacts", self._artifact))
        return app

    def _guarded(
        self, call: str, route: Route
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def serve(request: web.Request) -> web.StreamResponse:
            self._note(call, request)
            fault = self._fault(call)
            if fault.delay_s:
                await asyncio.sleep(fault.delay_s)
            if fault.cut == "before":
                return _cut(request)
            if fault.status is not None:
                return _refusal(fault.status, fault.message, retry_after=fault.retry_after)
            if request.headers.get("authorization") != f"Bearer {self.key}":
                return _refusal(401, "The key is not known.")
            answer = await route(request)
            self.changed()
            if fault.cut == "after":
                return _cut(request)
            return web.Response(body=answer, content_type="application/json")

        return serve

    def _note(self, call: str, request: web.Request) -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.seen.append(Seen(call=call, headers=headers, length=request.content_length or 0))

    def _fault(self, call: str) -> Fault:
        scripted = self._script.get(call)
        if scripted:
            return scripted.popleft()
        return self._always.get(call, Fault())

    async def _hello(self, request: web.Request) -> bytes:
        self.hellos.append(await _read(request, api.Hello))
        self.knows_agents = True
        return encode(
            api.HelloAnswer(
                location=api.LocationInfo(
                    id="loc-1", slug_name="test-location", proxy_url=self.proxy_url
                ),
                lease_s=self.book.lease_s,
                min_agent_version=self.min_agent_version,
                limits=self.limits,
            )
        )

    async def _claim(self, request: web.Request) -> bytes:
        claim = await _read(request, api.Claim)
        self.claims.append(claim)
        if not self.knows_agents:
            return encode(api.ClaimAnswer(say_hello=True))
        if (known := self._answers.get(claim.claim_id)) is not None:
            return known
        jobs = await self._jobs_for(claim)
        raw = tuple(msgspec.Raw(job) for job in jobs)
        answer = encode(api.ClaimAnswer(jobs=raw, next_poll_s=self.next_poll_s))
        if jobs:
            self._answers[claim.claim_id] = answer
        return answer

    async def _jobs_for(self, claim: api.Claim) -> tuple[bytes, ...]:
        ends = time.monotonic() + claim.wait_s
        while not (jobs := self.book.claim(claim)):
            left = ends - time.monotonic()
            if left <= 0:
                return ()
            await self._wait(min(left, 0.25))
        return jobs

    async def _renew(self, request: web.Request) -> bytes:
        renew = await _read(request, api.Renew)
        self.renewals.append(renew)
        return encode(self.book.renew(renew.leases))

    async def _release(self, request: web.Request) -> bytes:
        release = await _read(request, api.Release)
        self.book.release(release.jobs)
        return b"{}"

    async def _results(self, request: web.Request) -> bytes:
        submission = await _read(request, api.Submission)
        self.batches.append(len(submission.results))
        return encode(self.book.submit(submission.results))

    async def _pings(self, request: web.Request) -> bytes:
        new = (await _read(request, api.Pings)).pings
        self.pings |= {ping.ping_id: ping for ping in new if ping.ping_id not in self.pings}
        return b"{}"

    async def _events(self, request: web.Request) -> bytes:
        self.events.extend((await _read(request, api.Events)).events)
        return b"{}"

    async def _artifact(self, request: web.Request) -> bytes:
        name = f"{request.match_info['job']}/{request.match_info['name']}"
        body = await request.read()
        first, total = _part(request.headers.get("content-range"), length=len(body))
        held = self.artifacts.get(name, b"")
        if first != len(held) < total:
            raise web.HTTPRequestRangeNotSatisfiable(text=_go_on_at(len(held)))
        stored = self.artifacts[name] = (held + body) if len(held) < total else held
        complete = len(stored) == total
        if complete and hashlib.sha256(stored).hexdigest() != _digest(request):
            del self.artifacts[name]
            raise web.HTTPBadRequest(text=_refused(400, "Another digest."))
        return encode(api.ArtifactStored(offset=len(stored), complete=complete))


async def _read(request: web.Request, kind: type[MessageT]) -> MessageT:
    return decode(await request.read(), kind)


def _part(content_range: str | None, *, length: int) -> tuple[int, int]:
    """Where a part of an artifact begins, and how long the whole is."""
    if content_range is None:
        return 0, length
    begin, _, total = content_range.removeprefix("bytes ").partition("/")
    return int(begin.partition("-")[0]), int(total)


def _digest(request: web.Request) -> str:
    return request.headers[api.ARTIFACT_DIGEST_HEADER]


def _go_on_at(offset: int) -> str:
    attributes = api.StoredBytes(offset=offset)
    refusal = api.RangeRefusal(
        status_code=416, error="416", message="Elsewhere.", attributes=attributes
    )
    return encode(refusal).decode()


def _refused(status: int, message: str) -> str:
    return encode(api.Refusal(status_code=status, error=str(status), message=message)).decode()


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


def _refusal(status: int, message: str, *, retry_after: str | None = None) -> web.Response:
    headers = {} if retry_after is None else {"retry-after": retry_after}
    body = _refused(status, message)
    return web.Response(status=status, text=body, headers=headers, content_type="application/json")
