"""Real TCP peers on loopback: those that answer, and those that misbehave in known ways."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def listening(serve: Serve, **where: Any) -> AsyncIterator[asyncio.Server]:
    """Runs `serve` for each connection; leaves none open, whoever hung up first.

    `where` is what `asyncio.start_server` takes.
    """
    talks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        task.add_done_callback(talks.discard)
        gone = (OSError, asyncio.IncompleteReadError, asyncio.CancelledError)
        with contextlib.suppress(*gone):
            await serve(reader, writer)
        writer.transport.abort()

    server = await asyncio.start_server(one, **where)
    try:
        yield server
    finally:
        server.close()
        await _turns()  # a connection that has just come is made in several steps
        for task in talks:
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        await _turns()  # and ends in several


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def tcp_server(
    serve: Serve, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[int]:
    """Runs `serve` for each connection; yields the port."""
    async with listening(serve, host=host, port=0, ssl=tls) as server:
        yield server.sockets[0].getsockname()[1]


async def closes(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes the connection and ends it."""
    writer.close()


def echoes_and_closes(count: int) -> Serve:
    """Says back so many bytes and ends the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(count))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    return serve


async def echoes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says back what it hears and keeps the connection."""
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()


async def keeps_silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Listens and never says a word."""
    while await reader.read(65536):
        pass


def says(*pieces: bytes, pause_s: float = 0.0, then_closes: bool = True) -> Serve:
    """Speaks first, as SSH and SMTP servers do."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause_s)
        if then_closes:
            writer.close()
        else:
            await reader.read()

    return serve


async def resets(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Ends the connection with a reset."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()


async def resets_when_spoken_to(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Ends the connection with a reset, once it is surely made."""
    await reader.read(1)
    await resets(reader, writer)


@contextlib.contextmanager
def refusing_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> Iterator[int]:
    """A port that is taken, so that nobody else gets it, and refuses every connection."""
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
        if kind is socket.SOCK_DGRAM:
            taken.connect(taken.getsockname())  # hears itself only: others get port-unreachable
        yield port


def shared_port(port: int = 0) -> socket.socket:
    """A socket bound to the port, beside others that are bound to it by this; 0: any free one.

    While one of them stands, nobody else gets the port; connections are refused until one listens.
    """
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind(("127.0.0.1", port))
    sock.setblocking(False)  # noqa: FBT003 - takes no keyword
    return sock


@contextlib.contextmanager
def swallowing_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> Iterator[int]:
    """A port that takes what is sent and never answers: the queue of connections is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_INET, kind))
        listener.bind(("127.0.0.1", 0))
        if kind is socket.SOCK_STREAM:
            listener.listen(0)
            for _ in range(3):
                non_blocking = socket.SOCK_STREAM | socket.SOCK_NONBLOCK
                filler = stack.enter_context(socket.socket(socket.AF_INET, non_blocking))
                filler.connect_ex(listener.getsockname())
        yield int(listener.getsockname()[1])
