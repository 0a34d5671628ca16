"""The proxy breaks connections in the way it is told, and in no other."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.builders.agents import until
from tests.builders.patience import LONG_S
from tests.servers.fault_proxy import (
    BLACK_HOLE,
    HALF_OPEN,
    HELD_ANSWERS,
    LOST_ANSWER,
    OPEN,
    SERVER,
    Fault,
    FaultProxy,
    http_answer,
    serve_fault_proxy,
)

pytestmark = pytest.mark.faults


class Echo:
    """Says everything back, and remembers what it heard."""

    def __init__(self) -> None:
        self.heard = b""
        self.closed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(65536):
                self.heard += chunk
                writer.write(chunk)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            self.closed.set()
            writer.close()


@pytest.fixture
async def echo() -> AsyncIterator[tuple[Echo, int]]:
    server = Echo()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    yield server, listening.sockets[0].getsockname()[1]
    listening.close()


@pytest.fixture
async def proxy(echo: tuple[Echo, int]) -> AsyncIterator[FaultProxy]:
    async with serve_fault_proxy(echo[1]) as made:
        yield made


class Line:
    """A client's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, proxy: FaultProxy) -> "Line":
        return cls(*await asyncio.open_connection("127.0.0.1", proxy.port))

    async def say(self, words: bytes) -> None:
        self.writer.write(words)
        await self.writer.drain()

    async def hear(self, count: int) -> bytes:
        return await asyncio.wait_for(self.reader.readexactly(count), LONG_S)

    async def is_silent(self) -> bool:
        """Neither a byte nor an end within a moment."""
        try:
            await asyncio.wait_for(self.reader.read(1), 0.3)
        except TimeoutError:
            return True
        return False

    async def is_reset(self) -> bool:
        try:
            return await asyncio.wait_for(self.reader.read(1), LONG_S) == b""
        except ConnectionError:
            return True


@pytest.fixture
async def line(proxy: FaultProxy) -> AsyncIterator[Line]:
    made = await Line.to(proxy)
    yield made
    made.writer.close()


async def test_without_a_fault_everything_passes(line: Line) -> None:
    words = b"x" * 300_000
    await line.say(words)
    assert await line.hear(len(words)) == words


async def test_the_end_of_one_side_reaches_the_other(line: Line, echo: tuple[Echo, int]) -> None:
    await line.say(b"bye")
    line.writer.write_eof()
    assert await line.hear(3) == b"bye"
    await asyncio.wait_for(echo[0].closed.wait(), LONG_S)


async def test_what_a_server_said_last_is_heard_though_it_closes_at_once() -> None:
    async def say_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(3)
        writer.write(b"x" * 300_000)
        writer.close()

    server = await asyncio.start_server(say_and_close, "127.0.0.1", 0)
    async with server, serve_fault_proxy(server.sockets[0].getsockname()[1]) as proxy:
        for _ in range(20):
            line = await Line.to(proxy)
            await line.say(b"say")
            assert len(await asyncio.wait_for(line.reader.read(-1), LONG_S)) == 300_000
            line.writer.close()


async def test_latency_delays_what_it_passes(line: Line, proxy: FaultProxy) -> None:
    proxy.fault = Fault(latency_s=0.2)
    began = asyncio.get_running_loop().time()
    await line.say(b"slow")
    assert await line.hear(4) == b"slow"
    assert asyncio.get_running_loop().time() - began >= 0.4


async def test_a_drip_passes_every_byte_slowly(line: Line, proxy: FaultProxy) -> None:
    proxy.fault = Fault(drip_bytes=1, drip_s=0.02)
    began = asyncio.get_running_loop().time()
    await line.say(b"0123456789")
    assert await line.hear(10) == b"0123456789"
    assert asyncio.get_running_loop().time() - began >= 0.17  # nine pauses


async def test_a_cut_passes_so_many_bytes_and_resets_both_ends(
    line: Line, proxy: FaultProxy, echo: tuple[Echo, int]
) -> None:
    proxy.fault = Fault(cut_after=4)
    await line.say(b"0123456789")
    await until(echo[0].closed.is_set)
    assert echo[0].heard == b"0123"


async def test_a_cut_of_the_answer_lets_the_question_through(
    line: Line, proxy: FaultProxy, echo: tuple[Echo, int]
) -> None:
    proxy.fault = Fault(cut_after=2, of=SERVER)
    await line.say(b"0123456789")
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await line.hear(10)
    assert echo[0].heard == b"0123456789"


async def test_a_stop_passes_so_many_bytes_and_leaves_the_connection(
    line: Line, proxy: FaultProxy, echo: tuple[Echo, int]
) -> None:
    proxy.fault = Fault(stops_after=4)
    await line.say(b"0123456789")
    assert await line.hear(4) == b"0123"
    await line.say(b"more")
    assert await line.is_silent()
    assert echo[0].heard == b"0123"


async def test_nothing_is_passed_to_the_port_of_a_server_that_is_dead(
    proxy: FaultProxy, echo: tuple[Echo, int]
) -> None:
    proxy.find_upstream = lambda: None
    line = await Line.to(proxy)
    await line.say(b"anybody?")
    assert await line.is_reset()
    assert echo[0].heard == b""


async def test_a_black_hole_takes_connections_and_says_nothing(
    proxy: FaultProxy, echo: tuple[Echo, int]
) -> None:
    proxy.fault = BLACK_HOLE
    line = await Line.to(proxy)
    await line.say(b"anybody?")
    assert await line.is_silent()
    assert echo[0].heard == b""
    line.writer.close()


async def test_held_answers_reach_nobody_though_the_question_arrived(
    line: Line, proxy: FaultProxy, echo: tuple[Echo, int]
) -> None:
    proxy.fault = HELD_ANSWERS
    await line.say(b"question")
    await until(lambda: echo[0].heard == b"question")
    assert await line.is_silent()


async def test_half_open_ends_the_server_and_leaves_the_client_waiting(
    line: Line, proxy: FaultProxy, echo: tuple[Echo, int]
) -> None:
    await line.say(b"one")
    assert await line.hear(3) == b"one"
    proxy.fault = HALF_OPEN
    await asyncio.wait_for(echo[0].closed.wait(), LONG_S)
    await line.say(b"two")
    assert await line.is_silent()
    assert echo[0].heard == b"one"


async def test_refusing_ends_what_stands_and_comes_back_at_the_same_port(
    line: Line, proxy: FaultProxy
) -> None:
    await line.say(b"one")
    assert await line.hear(3) == b"one"
    await proxy.refuse()
    assert await line.is_reset()
    with pytest.raises(ConnectionRefusedError):
        await Line.to(proxy)
    await proxy.accept()
    again = await Line.to(proxy)
    await again.say(b"two")
    assert await again.hear(3) == b"two"
    again.writer.close()


async def test_a_server_that_is_away_looks_like_a_broken_connection(proxy: FaultProxy) -> None:
    proxy.upstream = 1
    line = await Line.to(proxy)
    assert await line.is_reset()


async def test_an_armed_fault_strikes_only_whoever_says_the_words(proxy: FaultProxy) -> None:
    armed = proxy.arm(LOST_ANSWER, when=b"results")
    good, bad = await Line.to(proxy), await Line.to(proxy)
    await good.say(b"claim")
    assert await good.hear(5) == b"claim"
    await bad.say(b"results")
    await proxy.struck(armed)
    assert await bad.is_reset()
    await good.say(b"results")
    assert await good.hear(7) == b"results", "it strikes once"
    good.writer.close()


async def test_an_answer_is_given_in_the_servers_place(
    line: Line, proxy: FaultProxy, echo: tuple[Echo, int]
) -> None:
    proxy.fault = http_answer(429, retry_after=7)
    await line.say(b"GET / HTTP/1.1\r\n\r\n")
    said = await asyncio.wait_for(line.reader.read(), LONG_S)
    assert said.startswith(b"HTTP/1.1 429 ")
    assert b"retry-after: 7\r\n" in said
    assert echo[0].heard == b""


async def test_healing_ends_the_fault(proxy: FaultProxy) -> None:
    proxy.fault = BLACK_HOLE
    proxy.arm(LOST_ANSWER, when=b"hello")
    proxy.heal()
    assert proxy.fault is OPEN
    line = await Line.to(proxy)
    await line.say(b"hello")
    assert await line.hear(5) == b"hello"
    line.writer.close()
