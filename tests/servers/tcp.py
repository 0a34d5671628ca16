"""Real TCP peers on loopback: those that answer, and those that misbehave in known ways."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def tcp_server(
    serve: Serve, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[int]:
    """Runs `serve` for each connection; yields the port."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await serve(reader, writer)
        writer.transport.abort()

    server = await asyncio.start_server(one, host, 0, ssl=tls)
    tasks = asyncio.all_tasks()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        mine = [
            task
            for task in asyncio.all_tasks() - tasks
            if getattr(task.get_coro(), "__name__", "") == "one"
        ]
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)


async def closes(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes the connection and ends it."""
    writer.close()


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
