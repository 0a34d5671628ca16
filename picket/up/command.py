"""`picket up`: starts everything, and shows results until it is stopped."""

import asyncio
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rich.console import Console

from picket.api_client import ApiRefusedError, ApiUnreachableError, PublicApi
from picket.errors import CommandError, ExitCode
from picket.report import trace_command
from picket.terminal import near_path
from picket.up.addresses import require_free_port
from picket.up.agent_types import AgentTypes
from picket.up.dashboard import BAD, Dashboard, NewResult, ResultPoller
from picket.up.dashboard_view import Display, open_display, summary, verdict
from picket.up.data_dir import DataDir, open_data_dir
from picket.up.demo_target import HOST, ping_forever
from picket.up.processes import Child, ChildDiedError, LocalPicket, local_picket


class FirstTrace:
    """Prints how to open the trace of the first failure; the API has those of the others."""

    def __init__(self, api: PublicApi, folder: Path, tell: Callable[[str], None]) -> None:
        """`folder`: where the trace is stored."""
        self._api = api
        self._folder = folder
        self._tell = tell
        self._found: asyncio.Queue[NewResult] = asyncio.Queue()
        self._is_found = False

    def watch(self, results: Iterable[NewResult]) -> None:
        """Remember the first failed result that has a trace."""
        failed = (one for one in results if one.status in BAD and one.trace is not None)
        first = next(failed, None)
        if first is not None and not self._is_found:
            self._is_found = True
            self._found.put_nowait(first)

    async def fetch(self) -> None:
        """Wait for such a result and print the command; if its trace is gone, wait for the next."""
        while not await self._offer(await self._found.get()):
            self._is_found = False

    async def _offer(self, result: NewResult) -> bool:
        if result.trace is None:
            return False
        try:
            content = await self._api.file(result.trace)
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
    """The port of the service. None: that of the last start, or 8080, or a free one."""
    until_results: int | None
    """End after this many results. None: run until stopped."""
    patience_s: float
    """With `until_results`: how long to wait for the next result before giving up."""


def run_up(options: UpOptions, console: Console) -> int:
    """Run until stopped, or until there are enough results; gives the exit code.

    Raises:
        CommandError: it could not start, a part of it ended by itself, or no results came.
    """
    if options.port is not None:
        require_free_port(options.port, option="--port")
    with open_data_dir(options.data_dir, fresh=options.fresh) as folder:
        return asyncio.run(_Up(options, folder, console).run())


class _Up:
    """One run of `picket up`."""

    def __init__(self, options: UpOptions, folder: DataDir, console: Console) -> None:
        self._options = options
        self._folder = folder
        self._console = console
        self._dashboard = Dashboard()
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
        self._console.print("starting service, agent and demo target…", style="dim")
        try:
            async with local_picket(self._folder, port=self._options.port) as local:
                self._print_addresses(local)
                await self._print_link(local.api)
                self._types = local.types
                self._running = True
                await self._watch(local)
                self._console.print("stopping…", style="dim")
        except asyncio.CancelledError:
            # A signal came during the start, or a second one during the stop: `timeout` signals
            # its whole group, and make passes the signal on once more.
            self._conclude()
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

    def _print_addresses(self, local: LocalPicket) -> None:
        folder, ports = self._folder, local.target.ports
        shop = f"http://{HOST}:{ports.http}, https://{HOST}:{ports.https}"
        api_key, agent_key = map(near_path, (folder.api_key_file, folder.location_key_file))
        ports_of_agent = (
            f"pings at {local.ports.ping_url}/ping/TOKEN, "
            f"health at {local.ports.health_url}/-/readiness"
        )
        lines = (
            f"API      {local.api.url}/v1, documented at {local.api.url}/docs",
            f"keys     {api_key} (API), {agent_key} (agents)",
            f"agent    {ports_of_agent}",
            f"logs     {near_path(folder.logs)}",
            f"target   {shop}, echo {ports.echo}, DNS {ports.dns}",
        )
        for line in (*lines, *(f"note     {move}" for move in local.moves)):
            self._console.out(line, highlight=False)

    async def _print_link(self, api: PublicApi) -> None:
        """Tell where the pages are; everything else works without."""
        with suppress(ApiRefusedError, ApiUnreachableError):
            link = await api.sign_in_link()
            self._console.out(f"pages    {link} (works once, for 24 h)", highlight=False)

    async def _watch(self, local: LocalPicket) -> None:
        title = f"{local.api.url} · Ctrl-C stops it"
        with open_display(self._console, self._dashboard, title=title) as display:
            tell = partial(self._console.out, highlight=False)
            trace = FirstTrace(local.api, self._folder.traces, tell)
            on_results = partial(self._take, display, trace)
            feed = ResultPoller(local.api, self._dashboard, on_results, since=self._began_at)
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(feed.follow(), name="feed"),
                    group.create_task(ping_forever(local.ping_url), name="nightly job"),
                    group.create_task(display.keep_fresh(), name="display"),
                    group.create_task(trace.fetch(), name="first trace"),
                    group.create_task(
                        local.types.follow(tell, local.set_up, self._end_if_enough),
                        name="types of the agent",
                    ),
                    group.create_task(self._enforce_patience(), name="patience"),
                    group.create_task(_watch_child(local.service), name="service watch"),
                    group.create_task(_watch_child(local.agent), name="agent watch"),
                ]
                await self._over.wait()
                for task in tasks:
                    task.cancel()

    def _take(self, display: Display, trace: FirstTrace, results: list[NewResult]) -> None:
        display.show(results)
        trace.watch(results)
        self._news.set()
        self._end_if_enough()

    def _end_if_enough(self) -> None:
        """End once there are enough results and all types are tested, as the summary lists both."""
        wanted, types = self._options.until_results, self._types
        if wanted is None or types is None or not types.is_known:
            return
        if self._dashboard.counts.total() >= wanted:
            self._over.set()

    async def _enforce_patience(self) -> None:
        if self._options.until_results is None:
            return
        while True:
            self._news.clear()
            try:
                async with asyncio.timeout(self._options.patience_s):
                    await self._news.wait()
            except TimeoutError as problem:
                raise CommandError(
                    f"no result arrived within {self._options.patience_s:g} s; "
                    f"see the logs in {self._folder.logs}",
                    ExitCode.FAILED,
                ) from problem

    def _conclude(self) -> int:
        if self._dashboard.totals():
            self._console.print(summary(self._dashboard, width=self._console.width))
            self._console.out(verdict(self._dashboard), highlight=False)
        for line in () if self._types is None else self._types.lines:
            self._console.out(line, highlight=False)
        unfinished = self._stopped and self._options.until_results is not None
        return ExitCode.INTERRUPTED if unfinished else ExitCode.OK


async def _watch_child(child: Child) -> None:
    """Raise as soon as the child ends, which it should not do before it is stopped."""
    await child.wait()
    raise ChildDiedError(child)
