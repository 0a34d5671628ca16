"""A TCP proxy that breaks on command: latency, drip, cut, black hole, half-open, refusal."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Final

from tests.builders.patience import LONG_S
from tests.servers.tcp import shared_port

_HOST: Final = "127.0.0.1"
_CHUNK_BYTES: Final = 64 * 1024
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)


class Side(Enum):
    """Who speaks."""

    CLIENT = auto()
    SERVER = auto()


BOTH: Final = frozenset(Side)
CLIENT: Final = frozenset({Side.CLIENT})
SERVER: Final = frozenset({Side.SERVER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to a connection; without anything it is passed through."""

    latency_s: float = 0
    """Every chunk comes this much later."""
    drip_bytes: int | None = None
    """Pass so many bytes at a time, `drip_s` apart. None: whole chunks."""
    drip_s: float = 0.01
    cut_after: int | None = None
    """Pass so many bytes of `of`, then reset both ends. None: no cut."""
    of: frozenset[Side] = CLIENT
    """Whose bytes are counted by `cut_after`."""
    stops_after: int | None = None
    """Pass so many bytes of the client, then none, while the connection stands. None: all."""
    swallow: frozenset[Side] = frozenset()
    """Whose bytes vanish; BOTH is a black hole."""
    half_open: bool = False
    """The server's end is closed, and the client is not told."""
    answer: bytes | None = None
    """Said to the client instead of what the server says, which hears nothing. None: nothing."""


OPEN: Final = Fault()
BLACK_HOLE: Final = Fault(swallow=BOTH)
HELD_ANSWERS: Final = Fault(swallow=SERVER)
"""The server hears everything, the client nothing."""
RESET: Final = Fault(cut_after=0)
LOST_ANSWER: Final = Fault(cut_after=0, of=SERVER)
"""The request arrives, and the connection breaks with the first byte of the answer."""
HALF_OPEN: Final = Fault(half_open=True)


def http_answer(status: int, *, retry_after: int | None = None) -> Fault:
    """Every request is refused with this status. No `retry_after`: without the header."""
    wait = "" if retry_after is None else f"retry-after: {retry_after}\r\n"
    head = f"HTTP/1.1 {status} Fault\r\n{wait}content-length: 0\r\nconnection: close\r\n\r\n"
    return Fault(answer=head.encode())


@dataclass(slots=True)
class _Armed:
    """A fault that waits for words of the client."""

    fault: Fault
    words: bytes
    times: int
    struck: int = 0
    awaited: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True, eq=False)
class _Connection:
    """Both ends of one connection; `own` is a fault of its own, None: the proxy's counts."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    number: int
    own: Fault | None = None
    passed: dict[Side, int] = field(default_factory=lambda: dict.fromkeys(Side, 0))
    answered: bool = False

    def reset(self) -> None:
        for end in (self.client, self.server):
            _reset(end)


class FaultProxy:
    """Made by `serve_fault_proxy`; `upstream` and `fault` may change at any time."""

    def __init__(self) -> None:
        self.upstream = 0
        """The server's port."""
        self.find_upstream: Callable[[], int | None] = lambda: self.upstream
        """None: connections are ended, because the port may be another one's by now."""
        self.connections_made = 0
        self.hear: Callable[[int, bytes], None] = _forget
        """Told all that clients say as it comes, whatever becomes of it, by the connection."""
        self._fault = OPEN
        self._armed: list[_Armed] = []
        self._open: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Server | None = None
        # Bound and never listening: it keeps the port ours while connections are refused.
        self._reserve = shared_port()
        self.port: int = self._reserve.getsockname()[1]

    @property
    def url(self) -> str:
        """Where clients go."""
        return f"http://{_HOST}:{self.port}"

    @property
    def fault(self) -> Fault:
        """What happens to every connection, those that stand included."""
        return self._fault

    @fault.setter
    def fault(self, fault: Fault) -> None:
        self._fault = fault
        for connection in self._open:
            connection.passed = dict.fromkeys(Side, 0)
            if fault.half_open:
                connection.server.close()

    def arm(self, fault: Fault, *, when: bytes, times: int = 1) -> _Armed:
        """Break the next connections whose client says these words, from these words on."""
        armed = _Armed(fault, when, times)
        self._armed.append(armed)
        return armed

    async def struck(self, armed: _Armed) -> None:
        """Wait until an armed fault has struck once more than it was waited for before."""
        armed.awaited += 1
        async with asyncio.timeout(LONG_S):
            while armed.struck < armed.awaited:
                armed.changed.clear()
                await armed.changed.wait()

    def heal(self) -> None:
        """No more faults; connections that are broken end, the others go on."""
        self._armed.clear()
        self._fault = OPEN
        for connection in tuple(self._open):
            if connection.own not in {None, OPEN} or connection.server.is_closing():
                connection.reset()

    def reset_all(self) -> None:
        """Reset every connection that stands."""
        for connection in tuple(self._open):
            connection.reset()

    async def refuse(self) -> None:
        """Refuse new connections, and reset those that stand."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        self.reset_all()

    async def accept(self) -> None:
        """Take connections, at the same port as ever."""
        if self._listening is None:
            self._listening = await asyncio.start_server(
                self._serve, sock=shared_port(self.port), limit=_CHUNK_BYTES
            )

    async def close(self) -> None:
        """End everything."""
        await self.refuse()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._reserve.close()

    async def _serve(self, hears: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        self.connections_made += 1
        number = self.connections_made  # others connect meanwhile
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._join(hears, client, number)
        except (OSError, asyncio.CancelledError):
            _reset(client)
        finally:
            self._tasks.discard(task)

    async def _join(
        self, hears: asyncio.StreamReader, client: asyncio.StreamWriter, number: int
    ) -> None:
        upstream = self.find_upstream()
        if upstream is None:
            _reset(client)
            return
        back, server = await asyncio.open_connection(_HOST, upstream, limit=_CHUNK_BYTES)
        connection = _Connection(client, server, number=number)
        self._open.add(connection)
        if self._fault.half_open:
            server.close()
        try:
            await asyncio.gather(
                self._pass_on(connection, Side.CLIENT, hears, server),
                self._pass_on(connection, Side.SERVER, back, client),
            )
        finally:
            self._open.discard(connection)
            connection.reset()

    async def _pass_on(
        self,
        connection: _Connection,
        side: Side,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
    ) -> None:
        while chunk := await self._heard(connection, side, source):
            if side is Side.CLIENT:
                self.hear(connection.number, chunk)
                self._strike(connection, chunk)
            await self._deliver(connection, side, chunk, sink)
        if not self._silent_end(connection, side):
            _finish(sink)

    async def _heard(
        self, connection: _Connection, side: Side, source: asyncio.StreamReader
    ) -> bytes:
        try:
            return await source.read(_CHUNK_BYTES)
        except OSError:
            if not self._silent_end(connection, side):
                connection.reset()
            return b""

    def _silent_end(self, connection: _Connection, side: Side) -> bool:
        """Whether the client must not learn that the server's end is gone."""
        fault = connection.own or self._fault
        return side is Side.SERVER and (fault.half_open or Side.SERVER in fault.swallow)

    def _strike(self, connection: _Connection, chunk: bytes) -> None:
        for armed in self._armed:
            if armed.struck < armed.times and armed.words in chunk:
                armed.struck += 1
                armed.changed.set()
                connection.own = replace(armed.fault)
                connection.passed = dict.fromkeys(Side, 0)
                if armed.fault.half_open:
                    connection.server.close()
                return

    async def _deliver(
        self, connection: _Connection, side: Side, chunk: bytes, sink: asyncio.StreamWriter
    ) -> None:
        fault = connection.own or self._fault
        if fault.latency_s:
            await asyncio.sleep(fault.latency_s)
        if fault.answer is not None:
            self._answer_instead(connection, fault.answer)
            return
        if side in fault.swallow or (fault.half_open and side is Side.CLIENT):
            return
        room = _room(fault, connection, side)
        part = chunk if room is None else chunk[:room]
        connection.passed[side] += len(part)
        with suppress(OSError):
            await _write(sink, part, fault)
        if room is not None and len(chunk) >= room and fault.stops_after is None:
            connection.reset()

    def _answer_instead(self, connection: _Connection, answer: bytes) -> None:
        if not connection.answered:
            connection.answered = True
            connection.client.write(answer)
            connection.client.close()
            connection.server.close()


@asynccontextmanager
async def serve_fault_proxy(upstream: int = 0) -> AsyncIterator[FaultProxy]:
    """A proxy in front of a port of this machine."""
    proxy = FaultProxy()
    proxy.upstream = upstream
    await proxy.accept()
    try:
        yield proxy
    finally:
        await proxy.close()


def _room(fault: Fault, connection: _Connection, side: Side) -> int | None:
    """How many bytes may still pass. None: there is no end to them on this side."""
    most = fault.cut_after if side in fault.of else None
    if fault.stops_after is not None and side is Side.CLIENT:
        most = fault.stops_after
    return None if most is None else max(0, most - connection.passed[side])


def _forget(_: int, __: bytes) -> None:
    """Nobody listens."""


async def _write(sink: asyncio.StreamWriter, part: bytes, fault: Fault) -> None:
    if fault.drip_bytes is None:
        sink.write(part)
        await sink.drain()
        return
    for start in range(0, len(part), fault.drip_bytes):
        sink.write(part[start : start + fault.drip_bytes])
        await sink.drain()
        await asyncio.sleep(fault.drip_s)


def _finish(writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, RuntimeError):
        writer.write_eof()


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    if sock is not None and not writer.is_closing():
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    writer.transport.abort()
