"""`picket up`: starts everything, and shows results until it is stopped."""

import asyncio
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from rich.console import Console

from picket.api_client import ApiRefusedError, ApiUnreachableError
from picket.errors import CommandError, ExitCode
from picket.report import trace_command
from picket.terminal import near_path
from picket.up.agent_types import AgentTypes
from picket.up.dashboard import BAD, Board, NewResult, ResultFeed
from picket.up.dashboard_view import Display, open_display, summary, verdict
from picket.up.data_dir import DataDir, open_data_dir
from picket.up.demo_target import HOST, ping_for_ever
from picket.up.processes import Child, ChildDiedError, LocalPicket, hold_free, local_picket


class Files(Protocol):
    """Where files of results are."""

    async def file(self, path: str) -> bytes:
        """One of them."""


class FirstTrace:
    """One line, once: the others are had by the API."""

    def __init__(self, files: Files, folder: Path, tell: Callable[[str], None]) -> None:
        """`folder`: for the trace."""
        self._files = files
        self._folder = folder
        self._tell = tell
        self._found: asyncio.Queue[NewResult] = asyncio.Queue()
        self._is_found = False

    def look_among(self, results: Iterable[NewResult]) -> None:
        """Remember the first that has one."""
        failed = (one for one in results if one.status in BAD and one.trace is not None)
        first = next(failed, None)
        if first is not None and not self._is_found:
            self._is_found = True
            self._found.put_nowait(first)

    async def fetch(self) -> None:
        """Wait for one, and tell the command; one that cannot be had makes room for the next."""
        while not await self._is_told(await self._found.get()):
            self._is_found = False

    async def _is_told(self, result: NewResult) -> bool:
        if result.trace is None:
            return False
        try:
            content = await self._files.file(result.trace)
            path = await asyncio.to_thread(self._put, f"{result.id}.zip", content)
        except (ApiRefusedError, ApiUnreachableError, OSError):
            return False
        command = trace_command(path)
        self._tell(f"trace    of “{result.check_name}”: {command}")
        return True

    def _put(self, name: str, content: bytes) -> Path:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._folder / name
        path.write_bytes(content)
        return near_path(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """What the command line asked for."""

    data_dir: Path
    fresh: bool
    port: int | None
    """Of the service. None: the one of the last start, or 8080, or a free one."""
    until_results: int | None
    """End after so many. None: run until stopped."""
    patience_s: float
    """With `until_results`: give up when nothing new came for so long."""


def run_up(options: UpOptions, console: Console) -> int:
    """Run until stopped, or until there are enough results; gives the exit code.

    Raises:
        CommandError: it could not start, a part of it ended by itself, or no results came.
    """
    if options.port is not None:
        hold_free(options.port, option="--port")
    with open_data_dir(options.data_dir, fresh=options.fresh) as folder:
        return asyncio.run(_Up(options, folder, console).run())


class _Up:
    """One run of `picket up`."""

    def __init__(self, options: UpOptions, folder: DataDir, console: Console) -> None:
        self._options = options
        self._folder = folder
        self._console = console
        self._board = Board()
        self._began_at = datetime.now(UTC)
        self._running = False
        self._stopped = False
        self._over = asyncio.Event()
        self._types: AgentTypes | None = None
        """None: nothing runs yet."""
        self._news = asyncio.Event()

    async def run(self) -> int:
        """Start everything, show results until something ends it, stop everything."""
        self._listen_for_signals()
        try:
            async with local_picket(self._folder, port=self._options.port) as local:
                self._tell_where(local)
                self._types = local.types
                self._running = True
                await self._watch(local)
                self._console.print("stopping…", style="dim")
        except asyncio.CancelledError:
            # A signal while it started, or a second one while it stopped.
            return ExitCode.INTERRUPTED
        return self._conclude()

    def _listen_for_signals(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal, task)

    def _on_signal(self, task: asyncio.Task[object] | None) -> None:
        if self._running and not self._over.is_set():
            self._stopped = True
            self._over.set()
        elif task is not None:
            task.cancel()

    def _tell_where(self, local: LocalPicket) -> None:
        folder, ports = self._folder, local.target.ports
        shop = f"http://{HOST}:{ports.http}, https://{HOST}:{ports.https}"
        api_key, agent_key = map(near_path, (folder.api_key_file, folder.location_key_file))
        lines = (
            f"API      {local.api.url}/v1, documented at {local.api.url}/docs",
            f"keys     {api_key} (API), {agent_key} (agents)",
            f"logs     {near_path(folder.logs)}",
            f"target   {shop}, echo {ports.echo}, DNS {ports.dns}",
        )
        for line in lines:
            self._console.out(line, highlight=False)

    async def _watch(self, local: LocalPicket) -> None:
        title = f"{local.api.url} · Ctrl-C ends it"
        with open_display(self._console, self._board, title=title) as display:
            tell = partial(self._console.out, highlight=False)
            trace = FirstTrace(local.api, self._folder.traces, tell)
            on_results = partial(self._take, display, trace)
            feed = ResultFeed(local.api, self._board, on_results, since=self._began_at)
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(feed.follow(), name="feed"),
                    group.create_task(ping_for_ever(local.ping_url), name="nightly job"),
                    group.create_task(display.keep_fresh(), name="display"),
                    group.create_task(trace.fetch(), name="first trace"),
                    group.create_task(
                        local.types.follow(tell, local.set_up, self._end_if_enough),
                        name="types of the agent",
                    ),
                    group.create_task(self._hold_patience(), name="patience"),
                    group.create_task(_report_death(local.service), name="service watch"),
                    group.create_task(_report_death(local.agent), name="agent watch"),
                ]
                await self._over.wait()
                for task in tasks:
                    task.cancel()

    def _take(self, display: Display, trace: FirstTrace, results: list[NewResult]) -> None:
        display.show(results)
        trace.look_among(results)
        self._news.set()
        self._end_if_enough()

    def _end_if_enough(self) -> None:
        """Not before it is known what cannot run here: the summary says it."""
        wanted, types = self._options.until_results, self._types
        if wanted is None or types is None or not types.is_known:
            return
        if self._board.counts.total() >= wanted:
            self._over.set()

    async def _hold_patience(self) -> None:
        if self._options.until_results is None:
            return
        while True:
            self._news.clear()
            try:
                async with asyncio.timeout(self._options.patience_s):
                    await self._news.wait()
            except TimeoutError as problem:
                raise CommandError(
                    f"no result came within {self._options.patience_s:g} s; "
                    f"see the logs in {self._folder.logs}",
                    ExitCode.FAILED,
                ) from problem

    def _conclude(self) -> int:
        if self._board.counts:
            self._console.print(summary(self._board, width=self._console.width))
            self._console.out(verdict(self._board), highlight=False)
        for line in () if self._types is None else self._types.lines:
            self._console.out(line, highlight=False)
        unfinished = self._stopped and self._options.until_results is not None
        return ExitCode.INTERRUPTED if unfinished else ExitCode.OK


async def _report_death(child: Child) -> None:
    """Ends only with an error: a part of ours should not end before we stop it."""
    await child.ended()
    raise ChildDiedError(child)
