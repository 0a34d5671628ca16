"""The ping port answers at once; its pings reach the service once each, with their age."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from structlog.testing import capture_logs

from agent.api_client.errors import RequestRefusedError, ServiceAwayError, ServiceError
from agent.api_client.outage import Outage
from agent.api_client.retry import Pace
from agent.heartbeats.pings import (
    HEADER_LIMIT,
    LastPings,
    PingIntake,
    PingPort,
    PingRelay,
    open_store,
)
from agent.heartbeats.store import PingClock, PingsInMemory, PingsOnDisk, StoredPing
from agent.telemetry.http_server import PortUnavailableError
from agent.telemetry.logs import Redactor
from contract.agent_api import Ping, Pings
from redaction.policy import HIDDEN as MASK
from tests.builders.agents import until


class Sink:
    """The service, which may be away or refuse."""

    def __init__(self) -> None:
        self.batches: list[tuple[Ping, ...]] = []
        self.problem: ServiceError | None = None
        self.outage = Outage()
        self.asked = 0
        self.asked_twice = asyncio.Event()
        self.got = asyncio.Event()

    @property
    def tokens(self) -> list[str]:
        return [ping.token for batch in self.batches for ping in batch]

    async def relay_pings(self, pings: Pings) -> None:
        self.asked += 1
        if self.asked == 2:
            self.asked_twice.set()
        if self.problem is not None:
            raise self.problem
        self.batches.append(pings.pings)
        self.got.set()


class Uptime:
    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


class Disk(PingsOnDisk):
    """A disk that may be full."""

    is_full = True

    def put(self, ping: StoredPing) -> None:
        if self.is_full:
            raise OSError(28, "No space left on device")
        super().put(ping)


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def uptime() -> Uptime:
    return Uptime()


@pytest.fixture
def clock(uptime: Uptime) -> PingClock:
    return PingClock(uptime_s=uptime)


@pytest.fixture
def book(uptime: Uptime) -> LastPings:
    return LastPings(uptime)


@pytest.fixture
def relay(sink: Sink, clock: PingClock) -> PingRelay:
    return PingRelay(
        sink, PingsInMemory(), clock=clock, max_age_s=86400, pace=Pace(first_s=0.01, cap_s=0.01)
    )


@pytest.fixture
def intake(book: LastPings, relay: PingRelay, clock: PingClock) -> PingIntake:
    clean = Redactor(["s3cret-value"]).text
    return PingIntake(book, take=relay.take, clock=clock, clean=clean)


@pytest.fixture
async def port(intake: PingIntake) -> AsyncIterator[PingPort]:
    port = PingPort(intake, port=0, host="127.0.0.1")
    await port.start()
    yield port
    await port.stop()


@pytest.fixture
async def http(port: PingPort) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port.port}") as session:
        yield session


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
async def test_a_ping_is_answered_200_noted_and_relayed(
    http: aiohttp.ClientSession, relay: PingRelay, sink: Sink, book: LastPings, method: str
) -> None:
    async with http.request(method, "/ping/tok-1", headers={"user-agent": "cron"}) as answer:
        assert answer.status == 200
    assert book.silent_for_s("tok-1") == 0
    await relay.flush()
    ((ping,),) = sink.batches
    assert (ping.token, ping.method, ping.user_agent) == ("tok-1", method, "cron")


async def test_a_ping_carries_its_age_not_only_its_time(
    http: aiohttp.ClientSession, relay: PingRelay, sink: Sink, book: LastPings, uptime: Uptime
) -> None:
    await http.get("/ping/tok-1")
    uptime.s += 90
    await relay.flush()
    assert sink.batches[0][0].age_s == 90
    assert book.silent_for_s("tok-1") == 90


async def test_each_ping_has_an_id_of_its_own(
    http: aiohttp.ClientSession, relay: PingRelay, sink: Sink
) -> None:
    for _ in range(3):
        await http.get("/ping/tok-1")
    await relay.flush()
    assert len({ping.ping_id for ping in sink.batches[0]}) == 3


@pytest.mark.parametrize(
    ("headers", "source"),
    [
        ({"Origin": "https://a.example"}, "https://a.example"),
        ({"Referer": "https://b.example/x"}, "https://b.example/x"),
        ({"Origin": "https://a.example", "Referer": "https://b.example/x"}, "https://a.example"),
        ({"Referer": "https://joe:pw@b.example/"}, f"https://{MASK}@b.example/"),
        ({"Origin": "https://s3cret-value.example"}, f"https://{MASK}.example"),
        ({"Referer": "x" * 5000}, "x" * HEADER_LIMIT),
        ({}, ""),
    ],
)
async def test_the_source_is_origin_or_referer_without_secrets(
    http: aiohttp.ClientSession,
    relay: PingRelay,
    sink: Sink,
    headers: dict[str, str],
    source: str,
) -> None:
    await http.get("/ping/tok-1", headers=headers)
    await relay.flush()
    assert sink.batches[0][0].source == source


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/ping",
        "/ping/",
        "/ping/a/b",
        "/ping/a b",
        "/ping/%00",
        "/ping/ä",
        "/x/tok",
        f"/ping/{'a' * 201}",
    ],
)
async def test_anything_but_a_token_is_404(
    http: aiohttp.ClientSession, relay: PingRelay, sink: Sink, path: str
) -> None:
    assert (await http.get(path)).status == 404
    await relay.flush()
    assert sink.batches == []


async def test_the_longest_token_and_the_whole_alphabet_are_taken(
    http: aiohttp.ClientSession,
) -> None:
    assert (await http.get(f"/ping/{'a' * 200}")).status == 200
    assert (await http.get("/ping/aZ09._~-")).status == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_another_method_is_405(http: aiohttp.ClientSession, method: str) -> None:
    answer = await http.request(method, "/ping/tok-1")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, POST, HEAD")


async def test_a_body_of_any_size_is_not_waited_for(port: PingPort, book: LastPings) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
    writer.write(b"POST /ping/tok-1 HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999\r\n\r\nx")
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    assert book.silent_for_s("tok-1") == 0
    await reader.read()  # until the port has waited long enough for the rest
    writer.close()
    await writer.wait_closed()


async def test_pings_wait_while_the_service_is_away(relay: PingRelay, sink: Sink) -> None:
    sink.problem = ServiceAwayError("away")
    relay.take(ping("a"))
    with pytest.raises(ServiceAwayError):
        await relay.flush()
    relay.take(ping("b"))
    with pytest.raises(ServiceAwayError):
        await relay.flush()
    sink.problem = None
    await relay.flush()
    assert sink.tokens == ["a", "b"]


async def test_the_relay_tries_again_by_itself(relay: PingRelay, sink: Sink) -> None:
    sink.problem = ServiceAwayError("away")
    task = asyncio.create_task(relay.run(), name="relay")
    relay.take(ping("a"))
    await sink.asked_twice.wait()
    sink.problem = None
    await sink.got.wait()
    task.cancel()
    assert sink.tokens == ["a"]


async def test_pings_that_came_close_together_are_relayed_together(
    relay: PingRelay, sink: Sink
) -> None:
    task = asyncio.create_task(relay.run(), name="relay")
    for token in "abc":
        relay.take(ping(token))
    await sink.got.wait()
    task.cancel()
    assert [len(batch) for batch in sink.batches] == [3]


async def test_a_batch_that_is_refused_for_good_does_not_stop_the_next(
    relay: PingRelay, sink: Sink
) -> None:
    sink.problem = RequestRefusedError("not understood")
    relay.take(ping("bad"))
    await relay.flush()
    sink.problem = None
    relay.take(ping("good"))
    await relay.flush()
    assert (sink.tokens, relay.dropped) == (["good"], 1)


async def test_pings_that_are_too_old_are_dropped_and_counted(
    relay: PingRelay, sink: Sink, uptime: Uptime, clock: PingClock
) -> None:
    relay.take(ping("old", clock))
    uptime.s += 86400
    relay.take(ping("new", clock))
    uptime.s += 1
    await relay.flush()
    assert (sink.tokens, relay.dropped) == (["new"], 1)


async def test_a_full_disk_loses_no_ping(sink: Sink, clock: PingClock, tmp_path: Path) -> None:
    relay = PingRelay(sink, Disk(tmp_path), clock=clock, max_age_s=86400)
    relay.take(ping("a"))
    await relay.flush()
    assert sink.tokens == ["a"]


async def test_pings_that_a_full_disk_left_in_memory_return_to_it_while_the_service_is_away(
    sink: Sink, clock: PingClock, tmp_path: Path
) -> None:
    disk = Disk(tmp_path)
    quick = Pace(first_s=0.01, cap_s=0.01)
    relay = PingRelay(sink, disk, clock=clock, max_age_s=86400, pace=quick)
    sink.problem = ServiceAwayError("away")
    with capture_logs() as logs:
        for token in "abc":
            relay.take(ping(token))
        task = asyncio.create_task(relay.run(), name="relay")
        await sink.asked_twice.wait()
        disk.is_full = False
        await until(lambda: [one.token for one in disk.waiting()] == ["a", "b", "c"])
        task.cancel()
        relay.close()
    assert [line["event"] for line in logs] == ["pings.disk_failed", "pings.disk_works"]


async def test_a_stop_puts_pings_on_the_disk_and_names_those_that_are_lost(
    sink: Sink, clock: PingClock, tmp_path: Path
) -> None:
    before = Disk(tmp_path)
    relay = PingRelay(sink, before, clock=clock, max_age_s=86400)
    relay.take(ping("a"))
    before.is_full = False
    relay.close()
    after = Disk(tmp_path)
    assert [one.token for one in after.waiting()] == ["a"]
    relay = PingRelay(sink, after, clock=clock, max_age_s=86400)
    relay.take(ping("b"))
    with capture_logs() as logs:
        relay.close()
    assert [(line["event"], line.get("count")) for line in logs] == [("pings.lost", 1)]


async def test_the_age_of_the_oldest_ping_is_known_until_the_service_has_it(
    sink: Sink, relay: PingRelay, uptime: Uptime
) -> None:
    assert relay.oldest_ping_s() is None
    relay.take(ping("a"))
    uptime.s += 5
    relay.take(ping("b"))
    sink.problem = ServiceAwayError("away")
    with pytest.raises(ServiceAwayError):
        await relay.flush()
    uptime.s += 5
    assert relay.oldest_ping_s() == 10
    sink.problem = None
    await relay.flush()
    assert relay.oldest_ping_s() is None
    relay.take(ping("c"))
    uptime.s += 1
    assert relay.oldest_ping_s() == 1


async def test_a_ping_that_comes_while_others_are_relayed_waits_until_the_next_look(
    sink: Sink, relay: PingRelay, uptime: Uptime
) -> None:
    relay.take(ping("a"))
    uptime.s += 5

    async def take_another(pings: Pings) -> None:
        if not sink.batches:
            relay.take(ping("b"))
            uptime.s += 2
        await Sink.relay_pings(sink, pings)

    sink.relay_pings = take_another  # type: ignore[method-assign]  # a service at work
    await relay.flush()
    assert sink.tokens == ["a", "b"]
    assert relay.oldest_ping_s() == 2
    await relay.flush()
    assert relay.oldest_ping_s() is None


async def test_a_ping_of_an_earlier_process_is_as_old_as_it_is(
    sink: Sink, clock: PingClock, uptime: Uptime
) -> None:
    left = PingsInMemory()
    left.put(ping("a"))
    uptime.s += 60
    relay = PingRelay(sink, left, clock=clock, max_age_s=86400)
    assert relay.oldest_ping_s() == clock.age_s(ping("a")) > 0


def test_the_book_knows_the_newest_ping_of_each_token(book: LastPings, uptime: Uptime) -> None:
    assert book.silent_for_s("a") is None
    book.record("a")
    uptime.s += 10
    book.record("b")
    book.record("a", age_s=50)
    assert (book.silent_for_s("a"), book.silent_for_s("b")) == (10, 0)


def test_the_book_is_bounded_and_forgets_what_was_silent_longest(uptime: Uptime) -> None:
    book = LastPings(uptime, limit=2)
    for token in "abac":
        book.record(token)
    known = [token for token in "abc" if book.silent_for_s(token) is not None]
    assert known == ["a", "c"]


def test_pings_that_wait_from_before_a_restart_are_in_the_book(
    tmp_path: Path, uptime: Uptime, clock: PingClock
) -> None:
    before = open_store(tmp_path)
    before.put(ping("a", clock))
    before.close()
    uptime.s += 30
    book = LastPings(uptime)
    book.recall(open_store(tmp_path).waiting(), clock)
    assert book.silent_for_s("a") == 30


def test_without_a_writable_directory_pings_wait_in_memory(tmp_path: Path) -> None:
    (tmp_path / "pings").write_text("in the way")
    assert isinstance(open_store(tmp_path), PingsInMemory)


async def test_a_taken_port_is_one_clear_line(intake: PingIntake) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(PortUnavailableError, match=f"^HEARTBEAT_PORT is {number}, but "):
            await PingPort(intake, port=number, host="127.0.0.1").start()


def ping(token: str, clock: PingClock | None = None) -> StoredPing:
    clock = clock or PingClock(uptime_s=lambda: 1000.0)
    return StoredPing(
        ping_id=f"id-{token}",
        token=token,
        method="GET",
        source="",
        user_agent="",
        received_at=clock.now(),
        boot_id=clock.boot_id,
        uptime_s=clock.uptime_s(),
    )
