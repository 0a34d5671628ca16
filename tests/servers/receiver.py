"""A receiver of alerts on loopback: it keeps what comes, fails, hangs, or asks to wait."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web


@dataclass(frozen=True, slots=True)
class Got:
    """A request that came."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


@dataclass(slots=True)
class Receiver:
    """What came, and how the next requests are answered."""

    url: str = ""
    got: list[Got] = field(default_factory=list)
    answers: deque[int] = field(default_factory=deque)
    """Statuses of the next answers; then 200."""
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    """Whether it answers nobody."""
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    _released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let go of those who hang."""
        self._released.set()

    async def wait_for(self, count: int) -> list[Got]:
        """As soon as so many requests have come, all of them."""
        async with asyncio.timeout(30):
            while len(self.got) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.got

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = await request.read()
        got = Got(request.method, request.path, dict(request.query), headers, body)
        self.got.append(got)
        self._arrived.set()
        if self.hangs:
            await self._released.wait()
        status = self.answers.popleft() if self.answers else 200
        return web.Response(status=status, headers=self.headers)


@asynccontextmanager
async def serve_receiver() -> AsyncIterator[Receiver]:
    """Serve it until the context ends."""
    receiver = Receiver()
    runner = web.ServerRunner(web.Server(receiver.handle), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    receiver.url = f"http://{host}:{port}"
    try:
        yield receiver
    finally:
        receiver.release()
        await asyncio.sleep(0)
        await runner.cleanup()
