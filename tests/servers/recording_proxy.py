"""A real HTTP forward proxy that remembers every request that went through it."""

import asyncio
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.builders.patience import LONG_S
from tests.servers.tcp import tcp_server


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One request, as the proxy read it."""

    method: str
    url: str
    headers: dict[str, str]
    """Lower-case names."""
    body: bytes

    @property
    def path(self) -> str:
        """The path of the URL."""
        return urlsplit(self.url).path


@dataclass(slots=True)
class RecordingProxy:
    """Use as `async with RecordingProxy() as proxy`, give the client `proxy.url`."""

    seen: list[Recorded] = field(default_factory=list)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _port: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def __aenter__(self) -> Self:
        self._port = await self._stack.enter_async_context(tcp_server(self._serve))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    @property
    def url(self) -> str:
        """What goes into `HTTP_PROXY`."""
        return f"http://127.0.0.1:{self._port}"

    def to(self, path: str) -> list[Recorded]:
        """The requests for this path."""
        return [request for request in self.seen if request.path == path]

    async def until_asked_for(self, path: str, *, timeout_s: float = LONG_S) -> Recorded:
        """Wait for the first request for this path."""
        async with asyncio.timeout(timeout_s):
            while not (found := self.to(path)):
                self._changed.clear()
                await self._changed.wait()
        return found[0]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await _read(reader)
        self.seen.append(request)
        self._changed.set()
        await _forward(request, writer)


async def _read(reader: asyncio.StreamReader) -> Recorded:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    method, url, _ = first.split(" ", 2)
    pairs = (line.split(":", 1) for line in lines)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    if headers.get("transfer-encoding") == "chunked":
        return Recorded(method=method, url=url, headers=headers, body=await _chunks(reader))
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Recorded(method=method, url=url, headers=headers, body=body)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body


async def _forward(request: Recorded, writer: asyncio.StreamWriter) -> None:
    """Pass the request on, on a connection of its own, and the answer back until it ends."""
    target = urlsplit(request.url)
    answer, onward = await asyncio.open_connection(target.hostname, target.port or 80)
    path = target.path + (f"?{target.query}" if target.query else "")
    dropped = {"connection", "proxy-connection", "transfer-encoding", "content-length"}
    headers = {k: v for k, v in request.headers.items() if k not in dropped}
    headers |= {"connection": "close", "content-length": str(len(request.body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with closing(onward):
        onward.write(f"{request.method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1"))
        onward.write(request.body)
        while piece := await answer.read(65_536):
            writer.write(piece)
            await writer.drain()
