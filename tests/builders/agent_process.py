"""A real agent as a child process, and a target for its checks."""

import asyncio
import json
import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
from aiohttp import web

from tests.builders.agents import until
from tests.builders.patience import LONG_S
from tests.fakes.service import KEY, FakeService

ROOT = Path(__file__).parents[2]
NO_RUNTIMES = ROOT / "contract"
"""A folder without runtimes: a browser's first start would take most of a test's time."""


@dataclass(slots=True)
class AgentProcess:
    """Use as `async with AgentProcess(service, data_dir) as agent`."""

    service: FakeService | str
    data_dir: Path
    environ: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _process: asyncio.subprocess.Process | None = None
    _readers: list[asyncio.Task[None]] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        url = self.service if isinstance(self.service, str) else self.service.url
        environ = {
            "PATH": os.environ["PATH"],
            "API_KEY": KEY,
            "SERVICE_URL": url,
            "AGENT_HEALTH_PORT": "0",
            "HEARTBEAT_PORT": "0",
            "AGENT_DATA_DIR": str(self.data_dir),
            "PICKET_RUNTIMES": str(NO_RUNTIMES),
            **self.environ,
        }
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "agent",
            env=environ,
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        streams = ((self._process.stdout, self.lines), (self._process.stderr, self.errors))
        self._readers = [
            asyncio.create_task(_read(stream, into)) for stream, into in streams if stream
        ]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        await asyncio.gather(*self._readers)

    @property
    def process(self) -> asyncio.subprocess.Process:
        """The child."""
        assert self._process is not None
        return self._process

    def signal(self, number: int) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    async def exit_code(self) -> int:
        """Wait for the end; what was written is complete then."""
        code = await asyncio.wait_for(self.process.wait(), LONG_S)
        await asyncio.gather(*self._readers)
        return code

    def events(self, name: str) -> list[dict[str, Any]]:
        """The log lines of one event."""
        found = [json.loads(line) for line in self.lines if line.startswith("{")]
        return [line for line in found if line["event"] == name]

    async def logged(self, name: str) -> dict[str, Any]:
        """Wait for the first log line of an event."""
        await until(lambda: self.events(name))
        return self.events(name)[0]

    async def health(self, path: str) -> int:
        """The status of a probe."""
        port = (await self.logged("health.listening"))["port"]
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{port}{path}") as answer,
        ):
            return answer.status

    def output(self) -> str:
        """All that it wrote."""
        return "\n".join((*self.lines, *self.errors))


async def _read(stream: asyncio.StreamReader, into: list[str]) -> None:
    async for line in stream:
        into.append(line.decode().rstrip("\n"))  # noqa: PERF401 - each line is wanted as it comes


@dataclass(slots=True)
class Target:
    """A web page, and another one that answers when the test says so."""

    release: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0
    url: str = ""
    _runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/", self._page)
        app.router.add_get("/slow", self._slow)
        self._runner = web.AppRunner(app, shutdown_timeout=0.05, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _page(self, _request: web.Request) -> web.Response:
        return web.Response(text="hello")

    async def _slow(self, _request: web.Request) -> web.Response:
        self.waiting += 1
        await self.release.wait()
        return web.Response(text="at last")
