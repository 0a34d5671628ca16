"""The service as the benchmark needs it: hands out jobs of one kind as fast as they are taken.

The agent's side is the agent API. The benchmark's side is `POST /bench/round`: hand out jobs made
from one spec for some seconds, never more than so many at once, and answer with what came back.
"""

import asyncio
import re
import sys
import time
from dataclasses import dataclass, field

import msgspec
import uvloop
from aiohttp import web

from contract import agent_api as api
from contract.checks import CheckSpec, CheckType, Lane, check_type, lane
from contract.job import Lease
from contract.result import Status
from contract.wire import decode, encode


class Order(msgspec.Struct, frozen=True):
    """One round."""

    spec: msgspec.Raw
    for_s: float
    at_once: int
    most: int | None = None
    """The round ends after so many jobs. None: after its time."""
    deadline_s: int = 30


class Tally(msgspec.Struct, frozen=True):
    """What came back."""

    done: int
    wrong: int
    """Results that are not PASSED."""
    example: str
    """One of the wrong ones; empty when there is none."""
    times_ms: list[float]
    took_ms: float
    """From the order to the last result."""


class Seen(msgspec.Struct, rename="camel"):
    """As much of an outcome as is looked at."""

    status: Status
    response_time_ms: float | None = None


class SeenResult(msgspec.Struct, rename="camel"):
    """As much of a result as is looked at."""

    job_id: str
    fence: int
    outcome: Seen


class SeenSubmission(msgspec.Struct):
    """As much of a submission as is looked at."""

    results: list[SeenResult]


@dataclass(slots=True)
class Round:
    """A round under way."""

    template: bytes
    lane: Lane
    check_type: CheckType
    ends_at: float
    at_once: int
    most: int | None
    began: float
    """When its first job could be claimed."""
    ended: float = 0
    """When its last result arrived."""
    handed_out: int = 0
    out: int = 0
    times_ms: list[float] = field(default_factory=list)
    done: int = 0
    wrong: int = 0
    example: str = ""
    finished: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_open(self) -> bool:
        """Whether more jobs are handed out."""
        return self._left > 0 and time.monotonic() < self.ends_at

    @property
    def _left(self) -> int:
        """How many more may be handed out now, at most."""
        return self.at_once if self.most is None else self.most - self.handed_out

    def finish_if_over(self) -> None:
        """The last result ends it, or the end of its time when nothing is out then."""
        if self.out == 0 and not self.is_open:
            self.finished.set()

    def take(self, count: int, first_number: int) -> list[bytes]:
        """Up to so many jobs."""
        count = max(0, min(count, self.at_once - self.out, self._left)) if self.is_open else 0
        self.out += count
        self.handed_out += count
        return [
            self.template.replace(b"@NUMBER@", str(first_number + offset).encode())
            for offset in range(count)
        ]


class Stub:
    """The whole service."""

    def __init__(self) -> None:
        self._round: Round | None = None
        self._number = 0
        self._changed = asyncio.Event()
        self._read = msgspec.json.Decoder(SeenSubmission)

    def application(self) -> web.Application:
        """Its routes."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post(api.HELLO, self._hello)
        app.router.add_post(api.CLAIM, self._claim)
        app.router.add_post(api.RESULTS, self._results)
        app.router.add_post(api.RENEW, self._nothing)
        app.router.add_post(api.RELEASE, self._released)
        app.router.add_put(api.ARTIFACTS + "/{job}/{name}", self._artifact)
        app.router.add_post("/bench/round", self._run_round)
        return app

    async def _hello(self, request: web.Request) -> web.Response:
        await request.read()
        location = api.LocationInfo(id="bench", slug_name="bench")
        lease_s = {Lane.UPTIME: 60.0, Lane.MAIN: 300.0}
        return _json(
            encode(api.HelloAnswer(location=location, lease_s=lease_s, min_agent_version="0.0.0"))
        )

    async def _claim(self, request: web.Request) -> web.Response:
        claim = decode(await request.read(), api.Claim)
        ends_at = time.monotonic() + claim.wait_s
        while True:
            if jobs := self._jobs(claim):
                return _json(b'{"jobs":[' + b",".join(jobs) + b'],"nextPollSeconds":0}')
            left_s = ends_at - time.monotonic()
            if left_s <= 0:
                return _json(b'{"jobs":[]}')
            await self._wait(left_s)

    def _jobs(self, claim: api.Claim) -> list[bytes]:
        current = self._round
        if current is None or current.check_type not in claim.check_types:
            return []
        jobs = current.take(claim.slots.get(current.lane, 0), self._number)
        self._number += len(jobs)
        return jobs

    async def _wait(self, limit_s: float) -> None:
        changed = self._changed
        try:
            await asyncio.wait_for(changed.wait(), limit_s)
        except TimeoutError:
            return

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _results(self, request: web.Request) -> web.Response:
        body = await request.read()
        submission = self._read.decode(body)
        for result in submission.results:
            self._count(result, body)
        self._wake()
        leases = tuple(Lease(job_id=one.job_id, fence=one.fence) for one in submission.results)
        return _json(encode(api.SubmissionAnswer(accepted=leases)))

    def _count(self, result: SeenResult, body: bytes) -> None:
        current = self._round
        if current is None:
            return
        current.out -= 1
        current.done += 1
        if result.outcome.status is not Status.PASSED:
            current.wrong += 1
            current.example = body[:3000].decode(errors="replace")
        if result.outcome.response_time_ms is not None:
            current.times_ms.append(result.outcome.response_time_ms)
        current.ended = time.monotonic()
        current.finish_if_over()

    async def _released(self, request: web.Request) -> web.Response:
        release = decode(await request.read(), api.Release)
        if self._round is not None:
            self._round.out -= len(release.jobs)
            self._round.wrong += len(release.jobs)
            self._round.example = f"released: {release.jobs[0].message}"
            self._round.finish_if_over()
        return _json(b"{}")

    async def _nothing(self, request: web.Request) -> web.Response:
        await request.read()
        return _json(b"{}")

    async def _artifact(self, request: web.Request) -> web.Response:
        """Take each piece: a check that fails brings files before its result."""
        await request.read()
        whole = re.fullmatch(r"bytes \d+-(\d+)/(\d+)", request.headers.get("content-range", ""))
        last, size = map(int, whole.groups()) if whole else (-1, 0)
        return _json(encode(api.ArtifactStored(offset=last + 1, complete=last + 1 == size)))

    async def _run_round(self, request: web.Request) -> web.Response:
        order = msgspec.json.decode(await request.read(), type=Order)
        self._round = current = _round(order)
        self._wake()
        asyncio.get_running_loop().call_later(order.for_s + 0.01, current.finish_if_over)
        await asyncio.wait_for(current.finished.wait(), order.for_s + order.deadline_s + 10)
        self._round = None
        return _json(encode(_tally(current)))


def _round(order: Order) -> Round:
    spec = decode(bytes(order.spec), CheckSpec)
    now = time.monotonic()
    return Round(
        template=_template(bytes(order.spec), order.deadline_s),
        lane=lane(spec),
        check_type=check_type(spec),
        began=now,
        ends_at=now + order.for_s,
        at_once=order.at_once,
        most=order.most,
    )


def _tally(ended: Round) -> Tally:
    return Tally(
        done=ended.done,
        wrong=ended.wrong,
        example=ended.example,
        times_ms=ended.times_ms,
        took_ms=(ended.ended - ended.began) * 1000,
    )


def _template(spec: bytes, deadline_s: int) -> bytes:
    return (
        b'{"jobId":"job-@NUMBER@","fence":1,"leaseSeconds":60,"runId":"run-@NUMBER@",'
        b'"checkId":"check-@NUMBER@","checkName":"bench","location":"bench",'
        b'"scheduledFor":"2026-11-21T10:00:00Z","deadlineSeconds":%d,"spec":'
        % deadline_s
        + spec
        + b"}"
    )


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")


async def serve(port: int) -> None:
    """Until the process is ended."""
    runner = web.AppRunner(Stub().application(), access_log=None, handle_signals=False)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
