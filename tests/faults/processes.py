"""Services and agents as real processes that can be killed, stopped, watched and started again."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import aiohttp

from tests.faults.nursery import Forked, Nursery, may_be_forked

ROOT: Final = Path(__file__).parents[2]
_LOG_LIMIT_S: Final = 90.0
_END_LIMIT_S: Final = 120.0
"""Longer than an agent that stops may try to deliver what is left."""


class ChildEndedError(AssertionError):
    """The process ended before it wrote what was waited for."""


@dataclass(slots=True, eq=False)
class Child:
    """A process of ours; its log lines are JSON."""

    process: asyncio.subprocess.Process | Forked
    lines: list[str] = field(default_factory=list)
    _reader: asyncio.Task[None] | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    fds_at_start: int = 0

    @classmethod
    async def start(
        cls,
        module: str,
        environ: Mapping[str, str],
        *,
        within: Sequence[str] = (),
        nursery: Nursery | None = None,
    ) -> Self:
        """`python -m module`; `within` is a command that ends by running what follows it.

        `nursery`: where the module is loaded already.
        """
        chosen = {"PATH": os.environ["PATH"], "LOG_FORMAT": "json", **environ}
        if nursery is None or within or not may_be_forked(environ):
            child = cls(await _started([*within, sys.executable, "-m", module], chosen))
        else:
            child = cls(await nursery.start(chosen))
        child._reader = asyncio.create_task(child._read(), name=f"read-{module}")
        return child

    @property
    def is_alive(self) -> bool:
        return self.process.returncode is None

    @property
    def pid(self) -> int:
        return self.process.pid

    def events(self, name: str) -> list[dict[str, Any]]:
        """The log lines of one event."""
        found = [json.loads(line) for line in self.lines if line.startswith("{")]
        return [line for line in found if line.get("event") == name]

    async def logged(self, name: str, *, count: int = 1) -> dict[str, Any]:
        """Wait for a log line of an event; the newest one."""
        async with asyncio.timeout(_LOG_LIMIT_S):
            while len(found := self.events(name)) < count:
                assert self._reader is not None
                if self._reader.done():
                    raise ChildEndedError(f"no {name} in:\n{self.output()}")
                self._changed.clear()
                await self._changed.wait()
        return found[-1]

    async def tasks(self) -> list[str]:
        """What runs on its event loop, by its own word (see `counted_tasks`)."""
        told = len(self.events("tasks.counted"))
        self.signal(signal.SIGUSR1)
        counted = await self.logged("tasks.counted", count=told + 1)
        return list(counted["tasks"])

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    async def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.signal(signal.SIGKILL)
        await self.ended()

    async def stop(self) -> int:
        """SIGTERM, and wait for the end; the exit code."""
        self.signal(signal.SIGTERM)
        return await self.ended()

    async def ended(self) -> int:
        """Wait for the end; the exit code, below 0 for a signal."""
        code = await asyncio.wait_for(self.process.wait(), _END_LIMIT_S)
        assert self._reader is not None
        await self._reader
        return code

    def output(self) -> str:
        return "\n".join(self.lines)

    def children(self) -> list[int]:
        """Processes that it started and that are still there."""
        found = Path(f"/proc/{self.pid}/task").glob("*/children")
        return [int(child) for path in found for child in path.read_text().split()]

    def fds(self) -> int:
        """Files and sockets that it has open."""
        return len(self.open_files())

    def open_files(self) -> list[str]:
        """What each of them is, as the kernel names it."""
        files = []
        for file in Path(f"/proc/{self.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed since it was listed
                files.append(str(file.readlink()))
        return sorted(files)

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.lines.append(line.decode().rstrip("\n"))
            self._changed.set()
        self._changed.set()


async def _started(
    command: Sequence[str], environ: Mapping[str, str]
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env=environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


class AgentChild(Child):
    """An agent's process."""

    async def health(self, path: str) -> int:
        """The status of a probe."""
        async with aiohttp.ClientSession() as http, http.get(await self._at(path)) as answer:
            return answer.status

    async def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        async with aiohttp.ClientSession() as http, http.get(await self._at("/metrics")) as answer:
            lines = (await answer.text()).splitlines()
        full = f"picket_agent_{name}"
        parts = [
            line.rpartition(" ") for line in lines if line.startswith((f"{full} ", full + "{"))
        ]
        return sum(float(value) for _, _, value in parts)

    async def _at(self, path: str) -> str:
        port = (await self.logged("health.listening"))["port"]
        return f"http://127.0.0.1:{port}{path}"
