"""A raw HTTP/1.1 server on loopback that says exactly what a test tells it to, byte for byte."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from tests.builders.patience import LONG_S
from tests.servers.tcp import tcp_server


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came in."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def all(self, name: str) -> list[str]:
        """Every value of a header."""
        return [value for known, value in self.headers if known.lower() == name.lower()]

    def one(self, name: str) -> str | None:
        """The only value of a header. None: it was not sent."""
        values = self.all(name)
        assert len(values) < 2, f"{name} was sent {len(values)} times"
        return values[0] if values else None


Page = bytes | Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class Origin:
    """A running server, and what it was asked."""

    base: str
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    talks: set[asyncio.Task[None]] = field(default_factory=set)

    def url(self, path: str = "/") -> str:
        return f"{self.base}{path}"

    @property
    def port(self) -> int:
        return int(self.base.rpartition(":")[2])

    async def until_left_alone(self) -> None:
        """Wait until nobody is connected any more."""
        if self.talks:
            await asyncio.wait(self.talks, timeout=LONG_S)
        assert not self.talks


def reply(
    body: bytes = b"fine", *, status: str = "200 OK", length: int | None = None, **headers: str
) -> bytes:
    """A whole answer; an underscore in a header's name stands for a hyphen."""
    fields = {"content-length": str(len(body) if length is None else length), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def redirect(location: str, *, status: str = "302 Found", **headers: str) -> bytes:
    return reply(b"", status=status, location=location, **headers)


async def silence(_: Asked, __: asyncio.StreamWriter) -> None:
    """Take the request and never answer."""
    await asyncio.sleep(3600)


def begins(answer: bytes) -> Page:
    """Send the start of an answer, and nothing more."""

    async def page(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await asyncio.sleep(3600)

    return page


def drips(head: bytes, part: bytes, *, times: int = 10_000, every_s: float = 0.02) -> Page:
    """Send the start of an answer, then a part at a time, so many times."""

    async def page(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        for _part in range(times):
            await asyncio.sleep(every_s)
            writer.write(part)
        await asyncio.sleep(3600)

    return page


def resets_after(answer: bytes) -> Page:
    """Send the start of an answer, then reset the connection."""

    async def page(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        await asyncio.sleep(0.05)
        reset(writer)

    return page


def closes_after(answer: bytes) -> Page:
    """Send these bytes and close, whatever they are the beginning of."""

    async def page(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        writer.close()

    return page


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST instead of FIN."""
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@contextlib.asynccontextmanager
async def http_origin(
    pages: Mapping[str, Page] | Page, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Origin]:
    """Runs until the block ends; pages are found by path, or one answers everything."""
    scheme = "http" if tls is None else "https"
    origin = Origin(base="")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        origin.talks.add(task)
        task.add_done_callback(origin.talks.discard)
        origin.connections += 1
        with contextlib.suppress(ValueError):  # what came is no HTTP/1.1 request
            await _talk(origin, pages, reader, writer)

    async with tcp_server(serve, tls=tls, host=host) as port:
        shown = f"[{host}]" if ":" in host else host
        origin.base = f"{scheme}://{shown}:{port}"
        yield origin


async def _talk(
    origin: Origin,
    pages: Mapping[str, Page] | Page,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    while True:
        asked = await read_request(reader)
        origin.asked.append(asked)
        page = pages[asked.target.partition("?")[0]] if isinstance(pages, Mapping) else pages
        if not isinstance(page, bytes):
            await page(asked, writer)
            return
        if asked.method == "HEAD":
            page = page.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        writer.write(page)
        await writer.drain()
        if b"content-length" not in page and b"transfer-encoding" not in page:
            writer.close()
            return


async def read_request(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    pairs = (line.partition(":") for line in lines)
    headers = tuple((name, value.strip()) for name, _, value in pairs)
    length = next((value for name, value in headers if name.lower() == "content-length"), "0")
    return Asked(method, target, headers, await reader.readexactly(int(length)))
