"""The memory that bodies of all runs share, and transfers that wait for it."""

import asyncio
import gzip
import random
import time
from typing import Any

import brotli
import pytest
import zstandard

from contract.requests import HttpVersion
from runners.net.deadlines import Deadlines
from runners.net.egress.rules import EgressRules
from runners.net.http.body_memory import JUDGING_BYTES, BodyLease, BodyMemory, BodyMemoryError
from runners.net.http.client import HttpEngine
from runners.net.http.exchange import HttpExchange
from runners.net.http.response import STORED_BYTES
from runners.net.http.transfer import READ_LIMIT_BYTES
from tests.builders.agents import until
from tests.builders.patience import LONG_S
from tests.builders.specs import an_http_request
from tests.servers.http2_origin import DATA, data, frame, frame_origin, head, header
from tests.servers.http_origin import Page, begins, closes_after, http_origin, redirect, reply

MB = 1 << 20
ROOM = 32 * MB
RANDOM = random.Random(1)
NOISE = RANDOM.randbytes(300_000)
TEN_MB = b"word " * (2 * MB)


def a_memory(*, max_wait_s: float = LONG_S) -> BodyMemory:
    return BodyMemory(JUDGING_BYTES + ROOM, max_wait_s=max_wait_s)


def a_lease(memory: BodyMemory) -> BodyLease:
    return BodyLease(memory, Deadlines())


async def waiting(memory: BodyMemory, size_bytes: int) -> asyncio.Task[None]:
    """Somebody who waits for this much."""
    before = memory.waiting
    task = asyncio.create_task(memory.wait(size_bytes, within_s=LONG_S))
    await until(lambda: memory.waiting > before)
    return task


async def test_bodies_get_memory_in_the_order_in_which_they_asked() -> None:
    memory = a_memory()
    assert memory.take(30 * MB)
    first, small, last = [await waiting(memory, size * MB) for size in (20, 1, 20)]
    assert not memory.take(1)
    memory.give_back(30 * MB)
    await asyncio.gather(first, small)
    assert (memory.held_bytes, memory.waiting, last.done()) == (21 * MB, 1, False)
    memory.give_back(20 * MB)
    await last
    assert (memory.held_bytes, memory.waiting) == (21 * MB, 0)


async def test_who_stops_waiting_leaves_its_place_to_the_next() -> None:
    memory = a_memory()
    assert memory.take(ROOM)
    gone, following = [await waiting(memory, ROOM) for _ in range(2)]
    gone.cancel()
    memory.give_back(ROOM)
    await following
    assert (memory.held_bytes, memory.waiting) == (ROOM, 0)


async def test_who_is_stopped_when_its_turn_comes_gives_its_memory_back() -> None:
    memory = a_memory()
    assert memory.take(ROOM)
    stopped = await waiting(memory, ROOM)
    memory.give_back(ROOM)
    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped
    assert (memory.held_bytes, memory.waiting) == (0, 0)


async def test_a_wait_moves_the_limit_of_its_run_and_no_other() -> None:
    memory, deadlines = a_memory(), Deadlines()
    lease = BodyLease(memory, deadlines)
    assert memory.take(ROOM)
    assert not lease.take(1)
    asyncio.get_running_loop().call_later(0.2, memory.give_back, ROOM)

    async def other() -> None:
        with deadlines.within(0.1):
            await asyncio.sleep(LONG_S)

    other_run = asyncio.create_task(other())
    with deadlines.within(0.1):
        await lease.wait()
    with pytest.raises(TimeoutError):
        await other_run
    assert memory.held_bytes == 1


async def test_a_wait_ends_and_is_our_fault() -> None:
    memory = a_memory(max_wait_s=0.01)
    lease = a_lease(memory)
    assert memory.take(ROOM)
    assert not lease.take(1)
    with pytest.raises(BodyMemoryError):
        await lease.wait()
    assert (memory.held_bytes, memory.waiting) == (ROOM, 0)


async def test_a_lease_that_nobody_holds_any_more_gives_its_memory_back() -> None:
    memory = a_memory()
    lease = a_lease(memory)
    assert lease.take(ROOM)
    del lease
    assert memory.held_bytes == 0


def chunked(body: bytes, *, step: int, **headers: str) -> bytes:
    head = reply(b"", transfer_encoding="chunked", **headers).replace(b"content-length: 0\r\n", b"")
    pieces = [body[at : at + step] for at in range(0, len(body), step)]
    return head + b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in pieces) + b"0\r\n\r\n"


async def fetch_after_wait(
    url: str, *, timeout_s: float = LONG_S, wait_s: float = 0, **request: Any
) -> tuple[HttpExchange, BodyLease]:
    """Fetch a page whose body has to wait for memory."""
    memory = a_memory()
    lease = a_lease(memory)
    assert memory.take(ROOM)
    async with HttpEngine(EgressRules()) as engine:
        asked = an_http_request(url, **request)
        task = asyncio.create_task(engine.exchange(asked, timeout_s=timeout_s, lease=lease))
        await until(lambda: memory.waiting)
        await asyncio.sleep(wait_s)
        memory.give_back(ROOM)
        exchange = await task
    assert lease.waited_s
    return exchange, lease


def gzipped(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)


BODIES = {
    "of_known_length": (reply(NOISE), NOISE),
    "in_small_chunks": (chunked(NOISE, step=700), NOISE),
    "in_large_chunks": (chunked(NOISE, step=100_000), NOISE),
    "a_gzip_bomb": (reply(gzipped(TEN_MB), content_encoding="gzip"), TEN_MB),
    "a_brotli_bomb": (reply(brotli.compress(TEN_MB), content_encoding="br"), TEN_MB),
    "a_zstd_bomb": (
        reply(zstandard.ZstdCompressor().compress(TEN_MB), content_encoding="zstd"),
        TEN_MB,
    ),
    "a_bomb_in_small_chunks": (chunked(gzipped(TEN_MB), step=100, content_encoding="gzip"), TEN_MB),
    "gzip_in_small_chunks": (chunked(gzipped(NOISE), step=700, content_encoding="gzip"), NOISE),
    "two_members": (
        reply(gzipped(TEN_MB) + gzipped(NOISE), content_encoding="gzip"),
        TEN_MB + NOISE,
    ),
    "gzip_within_gzip": (reply(gzipped(gzipped(TEN_MB)), content_encoding="gzip, gzip"), TEN_MB),
}


@pytest.mark.parametrize(("page", "body"), BODIES.values(), ids=BODIES)
async def test_a_wait_neither_loses_nor_doubles_a_byte(page: bytes, body: bytes) -> None:
    async with http_origin(page) as origin:
        exchange, lease = await fetch_after_wait(origin.url())
    assert exchange.failure is None
    assert exchange.answer is not None
    assert exchange.answer.body == body
    assert exchange.answer.body_bytes == len(body)
    assert lease.held_bytes >= len(body)


async def test_a_wait_of_http_2_neither_loses_nor_doubles_a_byte() -> None:
    body = TEN_MB + NOISE[:20_000]
    coded = gzipped(body)
    frames = [frame(DATA, coded[at : at + 500]) for at in range(0, len(coded), 500)]
    start = head(header(b"content-encoding", b"gzip"))
    async with frame_origin(start, *frames, data(b"")) as origin:
        exchange, _ = await fetch_after_wait(origin.url, http_version=HttpVersion.HTTP_2)
    assert exchange.failure is None
    assert exchange.answer is not None
    assert exchange.answer.body == body


async def test_a_bomb_that_waited_is_read_up_to_the_limit() -> None:
    page = reply(gzipped(bytes(READ_LIMIT_BYTES + 1)), content_encoding="gzip")
    async with http_origin(page) as origin:
        exchange, lease = await fetch_after_wait(origin.url())
    assert exchange.failure is None
    assert exchange.answer is not None
    assert exchange.answer.body_cut
    assert len(exchange.answer.body) == exchange.answer.body_bytes == READ_LIMIT_BYTES
    assert lease.held_bytes == READ_LIMIT_BYTES


CUT = gzipped(TEN_MB)[:-9]
FLAWED = {
    "cut_in_its_coding": (reply(CUT, content_encoding="gzip"), TEN_MB, "its gzip stream"),
    "cut": (closes_after(reply(NOISE, length=400_000)), NOISE, "after 300000 of 400000 bytes"),
    "broken": (
        reply(gzipped(NOISE)[:200_000] + b"?" * 100_000, content_encoding="gzip"),
        NOISE,
        "cannot be decoded",
    ),
}


@pytest.mark.parametrize(("page", "body", "said"), FLAWED.values(), ids=FLAWED)
async def test_a_body_that_waited_is_found_to_be_flawed(page: Page, body: bytes, said: str) -> None:
    async with http_origin(page) as origin:
        exchange, _ = await fetch_after_wait(origin.url())
    assert exchange.failure is not None
    assert said in exchange.failure.message
    assert exchange.answer is not None
    read = exchange.answer.body
    assert len(read) == exchange.answer.body_bytes > STORED_BYTES
    # What follows the place where a stream breaks may be anything.
    assert body.startswith(read[:190_000])


async def test_a_wait_is_no_time_of_the_target_and_moves_the_limit() -> None:
    began = time.monotonic()
    async with http_origin(reply(NOISE)) as origin:
        exchange, lease = await fetch_after_wait(origin.url(), timeout_s=2, wait_s=2.1)
    assert exchange.failure is None
    assert exchange.timings.total is not None
    assert exchange.timings.total / 1000 <= time.monotonic() - began - lease.waited_s


async def test_a_body_that_stalls_after_a_wait_is_our_fault() -> None:
    async with http_origin(begins(reply(NOISE, length=400_000))) as origin:
        with pytest.raises(BodyMemoryError, match="did not come in time"):
            await fetch_after_wait(origin.url(), timeout_s=1)


async def test_each_hop_takes_memory_for_its_own_body_alone() -> None:
    first = redirect("/end").replace(b"content-length: 0", b"content-length: 300000") + NOISE
    pages = {"/": first, "/end": reply(NOISE[:100_000])}
    memory = a_memory()
    lease = a_lease(memory)
    async with http_origin(pages) as origin, HttpEngine(EgressRules()) as engine:
        exchange = await engine.exchange(
            an_http_request(origin.url(), follow_redirects=True), timeout_s=LONG_S, lease=lease
        )
    assert exchange.failure is None
    assert memory.held_bytes == 100_000


LENGTHS = {
    "known": (reply(NOISE), len(NOISE)),
    "unknown": (chunked(NOISE, step=50_000), READ_LIMIT_BYTES),
    "encoded": (reply(gzipped(NOISE), content_encoding="gzip"), READ_LIMIT_BYTES),
    "too_long": (reply(bytes(READ_LIMIT_BYTES + 1)), READ_LIMIT_BYTES),
    "longer_than_it_says": (
        closes_after(b"HTTP/1.1 101 Switching\r\nContent-Length: 0\r\n\r\n" + NOISE),
        READ_LIMIT_BYTES,
    ),
    "as_short_as_results_keep": (reply(NOISE[:STORED_BYTES]), 0),
}


@pytest.mark.parametrize(("page", "held_bytes"), LENGTHS.values(), ids=LENGTHS)
async def test_a_long_body_takes_its_length_or_the_most_that_it_can_have(
    page: bytes, held_bytes: int
) -> None:
    lease = a_lease(a_memory())
    async with http_origin(page) as origin, HttpEngine(EgressRules()) as engine:
        await engine.exchange(an_http_request(origin.url()), timeout_s=LONG_S, lease=lease)
    assert lease.held_bytes == held_bytes
