"""Heartbeat pings from jobs in the closed network: taken at a port, relayed to the service."""

import asyncio
import re
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final

import structlog
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response

from agent.api_client.client import ServiceClient
from agent.api_client.errors import RequestRefusedError, ServiceError
from agent.api_client.retry import Backoff, Pace
from agent.data_folder import unusable
from agent.heartbeats.store import PingClock, PingsInMemory, PingsOnDisk, PingStore, StoredPing
from agent.telemetry.http_server import HttpPort, get_server_log, open_port, read_port
from contract.agent_api import Pings

SETTING: Final = "HEARTBEAT_PORT"
HEADER_LIMIT: Final = 300
"""Characters of a header that are kept with a ping."""
TOKENS_REMEMBERED: Final = 10_000
LINGER_S: Final = 0.25
"""Pings of this time go to the service together."""
_METHODS: Final = ("GET", "POST", "HEAD")
_PATH: Final = re.compile(r"/ping/([A-Za-z0-9._~\-]{1,200})")
_IDLE_LIMIT_S: Final = 15.0
_STOP_LIMIT_S: Final = 2.0

log = structlog.get_logger(__name__)


class LastPings:
    """When the newest ping of each token came in here; a token unheard for long is forgotten."""

    def __init__(
        self, uptime_s: Callable[[], float] = time.monotonic, *, limit: int = TOKENS_REMEMBERED
    ) -> None:
        self._uptime_s = uptime_s
        self._limit = limit
        self._heard_at: OrderedDict[str, float] = OrderedDict()

    def record(self, token: str, *, age_s: float = 0.0) -> None:
        """A ping with this token came in, so long ago."""
        heard_at = self._uptime_s() - age_s
        self._heard_at[token] = max(heard_at, self._heard_at.get(token, heard_at))
        self._heard_at.move_to_end(token)
        if len(self._heard_at) > self._limit:
            self._heard_at.popitem(last=False)

    def recall(self, pings: Iterable[StoredPing], clock: PingClock) -> None:
        """Pings that an earlier process took came in as well."""
        for ping in pings:
            self.record(ping.token, age_s=clock.age_s(ping))

    def silent_for_s(self, token: str) -> float | None:
        """Seconds since the newest ping with this token. None: none came here."""
        heard_at = self._heard_at.get(token)
        return None if heard_at is None else max(0.0, self._uptime_s() - heard_at)


def open_store(data_dir: Path) -> PingStore:
    """Where pings wait: in the data directory, or in memory when that cannot be written."""
    try:
        return PingsOnDisk(data_dir / "pings")
    except OSError as problem:
        log.warning("pings.kept_in_memory", because=unusable(problem))
        return PingsInMemory()


class PingRelay:
    """Keeps pings until the service has them: oldest first, once each."""

    def __init__(
        self,
        client: ServiceClient,
        store: PingStore,
        *,
        clock: PingClock,
        max_age_s: float,
        pace: Pace = Pace(),  # noqa: B008 - a frozen value
    ) -> None:
        self._client = client
        self._store = store
        self._spare = PingsInMemory()
        """For when the disk takes no more; what waits in it returns to the disk."""
        self._disk_failed = False
        """Whether the disk did not take the last ping."""
        self._clock = clock
        self._max_age_s = max_age_s
        self._backoff = Backoff(pace, client.outage)
        self._arrived = asyncio.Event()
        self._arrived.set()  # an earlier process may have left some
        self._one_at_a_time = asyncio.Lock()
        self._dropped = 0
        self._oldest_at: float | None = None
        """When the oldest ping that waits came in, by the uptime. None: none waits."""
        self._oldest_after_flush_at: float | None = None
        """When the first one came in since the newest flush began. None: none did."""
        if (oldest := next(store.waiting(), None)) is not None:
            self._oldest_at = clock.uptime_s() - clock.age_s(oldest)

    @property
    def dropped(self) -> int:
        """Pings given up: no room, too old, or refused for good."""
        return self._dropped + self._store.dropped + self._spare.dropped

    def oldest_ping_s(self) -> float | None:
        """The age of the oldest ping that waits, at least. None: none waits."""
        return None if self._oldest_at is None else self._clock.uptime_s() - self._oldest_at

    def take(self, ping: StoredPing) -> None:
        """Keep a ping, and relay it soon."""
        now = self._clock.uptime_s()
        self._oldest_at = now if self._oldest_at is None else self._oldest_at
        if self._oldest_after_flush_at is None:
            self._oldest_after_flush_at = now
        try:
            self._store.put(ping)
        except OSError as problem:
            self._note_disk(problem)
            self._spare.put(ping)
        else:
            self._note_disk(None)
        self._arrived.set()

    def close(self) -> None:
        """Put what waits in memory on the disk, and say how many pings are lost all the same."""
        self._return_to_disk()
        self._store.close()
        if lost := self._store.in_memory + self._spare.in_memory:
            log.error("pings.lost", count=lost, because="no disk takes them")

    async def run(self) -> None:
        """Relay what comes in; runs until it is cancelled."""
        while True:
            await self._arrived.wait()
            await asyncio.sleep(LINGER_S)
            self._arrived.clear()
            try:
                await self.flush()
            except ServiceError as problem:
                self._arrived.set()
                self._return_to_disk()
                await self._backoff.wait(problem, self._backoff.next_wait_s(problem))
            else:
                self._backoff.reset()

    async def flush(self) -> None:
        """Relay all that waits, once.

        Raises:
            ServiceError: the service did not take them; they go on waiting.
        """
        async with self._one_at_a_time:
            dropped_before = self.dropped
            self._oldest_after_flush_at = None
            await self._relay_all(self._store)
            await self._relay_all(self._spare)
            self._oldest_at = self._oldest_after_flush_at
            if self.dropped > dropped_before:
                log.warning("pings.dropped", count=self.dropped - dropped_before)

    def _return_to_disk(self) -> None:
        """Move what waits in memory to the disk, as far as that takes it again."""
        if not self._spare.in_memory or self._one_at_a_time.locked():
            return
        try:
            self._spare.move_to(self._store)
        except OSError as problem:
            self._note_disk(problem)
        else:
            self._note_disk(None)

    def _note_disk(self, problem: OSError | None) -> None:
        """Log when the disk begins to fail and when it works again, and nothing between."""
        if self._disk_failed == (problem is not None):
            return
        self._disk_failed = problem is not None
        if problem is not None:
            log.warning("pings.disk_failed", because=problem.strerror)
        else:
            log.info("pings.disk_works")

    async def _relay_all(self, store: PingStore) -> None:
        while batch := store.oldest():
            fresh = [ping for ping in batch if self._clock.age_s(ping) <= self._max_age_s]
            self._dropped += len(batch) - len(fresh)
            if fresh:
                await self._relay(fresh)
            store.settle()

    async def _relay(self, batch: list[StoredPing]) -> None:
        pings = Pings(pings=tuple(self._clock.build_ping(ping) for ping in batch))
        try:
            await self._client.relay_pings(pings)
        except RequestRefusedError as problem:
            # If kept, these would hold up all later pings.
            self._dropped += len(batch)
            log.warning("pings.refused", count=len(batch), because=str(problem))


class PingIntake:
    """What happens to a ping that came in: noted in the book, kept for the relay."""

    def __init__(
        self,
        last_pings: LastPings,
        *,
        take: Callable[[StoredPing], None],
        clock: PingClock,
        clean: Callable[[str], str],
    ) -> None:
        self._last_pings = last_pings
        self._take = take
        self._clock = clock
        self._clean = clean

    def receive(self, token: str, method: str, headers: Mapping[str, str]) -> None:
        """One ping; of its headers two are kept, without secrets and cut to a sane length."""
        self._last_pings.record(token)
        self._take(
            StoredPing(
                ping_id=uuid.uuid4().hex,
                token=token,
                method=method,
                source=self._clean_header(headers.get("Origin") or headers.get("Referer", "")),
                user_agent=self._clean_header(headers.get("User-Agent", "")),
                received_at=self._clock.now(),
                boot_id=self._clock.boot_id,
                uptime_s=self._clock.uptime_s(),
            )
        )

    def _clean_header(self, text: str) -> str:
        # Secrets go before the cut, so that none is cut in two and left behind.
        readable = text.encode("utf-8", "replace").decode()
        return self._clean(readable)[:HEADER_LIMIT]


class PingPort:
    """Takes `GET`, `POST` and `HEAD` of `/ping/<token>` and answers at once."""

    def __init__(self, intake: PingIntake, *, port: int, host: str = "") -> None:
        self._intake = intake
        self._wanted_port = port
        self._host = host
        self._served = HttpPort(
            self._answer,
            log=get_server_log("agent.heartbeats.pings"),
            idle_limit_s=_IDLE_LIMIT_S,
            stop_limit_s=_STOP_LIMIT_S,
        )
        self.port = 0
        """The port that it got; 0 before the start."""

    async def start(self) -> None:
        """Listen.

        Raises:
            PortUnavailableError: the port is taken or not allowed.
        """
        listener = open_port(SETTING, self._wanted_port, host=self._host)
        self.port = read_port(listener)
        await self._served.start(listener)
        log.info("pings.listening", port=self.port)

    async def stop(self) -> None:
        """Close the port."""
        await self._served.stop()

    async def _answer(self, request: BaseRequest) -> Response:
        """A body is not read at all: whatever a job sends along, the ping is what counts."""
        path = _PATH.fullmatch(request.path)
        if path is None:
            return _respond(HTTPStatus.NOT_FOUND, "Send pings to /ping/ followed by your token.")
        if request.method not in _METHODS:
            refusal = _respond(HTTPStatus.METHOD_NOT_ALLOWED, "Ping with GET or POST.")
            refusal.headers["allow"] = ", ".join(_METHODS)
            return refusal
        self._intake.receive(path[1], request.method, request.headers)
        return _respond(HTTPStatus.OK, "OK")


def _respond(status: HTTPStatus, message: str) -> Response:
    body = f'{{"message":"{message}"}}\n'
    return Response(status=status, text=body, content_type="application/json")
