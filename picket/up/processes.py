"""The processes of `picket up`: started, watched, stopped."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

from agent.settings import SECRET_PREFIX
from picket.api_client import ApiRefusedError, ApiUnreachableError, PublicApi
from picket.errors import CommandError, ExitCode
from picket.up.addresses import USUAL_PORT, Addresses, Ports, describe_moves, is_port_free
from picket.up.agent_types import AgentTypes, list_agents, set_up_checks, update_checks
from picket.up.data_dir import DataDir
from picket.up.demo_target import HOST, DemoTarget, demo_target
from picket.up.starter_checks import PING_TOKEN, starter_checks

_INHERITED: Final = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LOG_LEVEL"),
    *("PICKET_RUNTIMES", "CHROMIUM_PATH"),
)
"""The variables that children inherit; no proxy, key or database of the user is among them."""
_ALERTS: Final = ("SMTP_URL", "SMTP_FROM", "ALERT_EGRESS_ALLOW", "SERVICE_PUBLIC_URL")
"""The settings of the service that say how its alerts leave, and where their links lead."""
_TAIL_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to start: `python -P -m module` with these settings and no others."""

    module: str
    settings: Mapping[str, str]
    log: Path
    """Where standard output and error go, after what is there."""


class Child:
    """A running program; stopped with everything that it started."""

    def __init__(
        self, program: Program, process: asyncio.subprocess.Process, *, log_begins_at: int
    ) -> None:
        self._program = program
        self._process = process
        self._log_begins_at = log_begins_at
        """The offset in bytes; lines before it are from earlier starts."""

    def __repr__(self) -> str:
        return f"Child({self.name}, pid={self._process.pid}, exit_code={self.exit_code})"

    @classmethod
    async def start(cls, program: Program) -> "Child":
        """Start it in a new process group, so that Ctrl-C at the terminal reaches us alone."""
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        with program.log.open("ab") as log:
            log_begins_at = log.tell()
            process = await asyncio.create_subprocess_exec(
                *_parent_death_prefix(),
                sys.executable,
                "-P",  # a folder `agent` in the working directory is not ours
                "-m",
                program.module,
                env={**inherited, **program.settings},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return cls(program, process, log_begins_at=log_begins_at)

    @property
    def name(self) -> str:
        """The module that runs."""
        return self._program.module

    @property
    def exit_code(self) -> int | None:
        """The exit code; a negative one is a signal. None: the child is running."""
        return self._process.returncode

    @property
    def log(self) -> Path:
        """Where its output is."""
        return self._program.log

    async def wait(self) -> int:
        """Wait for its end; gives the exit code."""
        return await self._process.wait()

    async def stop(self, *, limit_s: float) -> None:
        """Ask it to end, wait that long, then kill its whole group."""
        try:
            if self.exit_code is None:
                self._signal(signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._process.wait(), limit_s)
        finally:
            # Even when it ended politely, something that it started may be left.
            self._signal(signal.SIGKILL)
        await self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def last_lines(self, count: int) -> list[str]:
        """The end of its log, as far as it is of this start."""
        with self.log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_begins_at, size - _TAIL_BYTES))
            text = log.read().decode("utf-8", "replace")
        return text.splitlines()[-count:]


def _parent_death_prefix() -> tuple[str, ...]:
    """Have the kernel end the child when we are killed, where util-linux can arrange that."""
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    return (setpriv, "--pdeathsig", "TERM", "--") if setpriv else ()


_START_LIMIT_S: Final = 180.0
"""A machine with two busy processors takes more than thirty."""
_ASK_AGAIN_S: Final = 0.1
_END_LIMIT_S: Final = 2.0
_STOP_LIMIT_S: Final = 6.0
_LAST_LINES: Final = 12
_SLOTS: Final = 32
"""How many uptime checks the agent runs at once, enough for the starter checks."""


AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPicket:
    """The running service, agent and demo target."""

    target: DemoTarget
    service: Child
    agent: Child
    api: PublicApi
    types: AgentTypes
    """What the agent runs."""
    set_up: Callable[[], Awaitable[None]]
    """Sets the starter checks right for what the agent runs by now."""
    ports: Ports
    """Where service and agent listen."""
    moves: tuple[str, ...]
    """Sentences on what is not where it was at the last start, or not where it usually is."""

    @property
    def ping_url(self) -> str:
        """Where the demo's nightly job reports: the agent's ping port."""
        return f"{self.ports.ping_url}/ping/{PING_TOKEN}"


class ChildDiedError(CommandError):
    """A part of ours ended by itself; the sentence shows the end of its log."""

    def __init__(self, child: Child) -> None:
        lines = "\n".join(f"  {line}" for line in child.last_lines(_LAST_LINES))
        super().__init__(
            f"the {child.name} {_describe_end(child.exit_code)}; its log ({child.log}) "
            f"ends with:\n{lines}",
            ExitCode.OWN_FAULT,
        )


def _describe_end(exit_code: int | None) -> str:
    """How a process ended, as the rest of a sentence; a negative exit code is a signal."""
    if exit_code is None or exit_code >= 0:
        return f"ended with exit code {exit_code}"
    if exit_code == -signal.SIGKILL:
        return "was killed (SIGKILL; perhaps the machine was out of memory)"
    name = signal.Signals(-exit_code).name if -exit_code in set(signal.Signals) else -exit_code
    return f"was ended by a signal ({name})"


@asynccontextmanager
async def local_picket(folder: DataDir, *, port: int | None) -> AsyncIterator[LocalPicket]:
    """Start everything in the order in which it depends on each other, and stop it in reverse.

    Raises:
        ChildDiedError: a part ended while it was starting.
        CommandError: the service did not answer in time.
    """
    async with AsyncExitStack() as stack:
        yield await _Starting(stack, folder, port, folder.addresses()).start_all()


@dataclass(frozen=True, slots=True)
class _Starting:
    """One start; what was started stops with the stack."""

    stack: AsyncExitStack
    folder: DataDir
    port: int | None
    """The requested port of the service. None: that of the last start, or the default, or any."""
    last: Addresses
    """Those of the last start."""

    async def start_all(self) -> LocalPicket:
        """Target, service, agent, and then the checks."""
        target = await self._target()
        ports, service, api, location = await self._service()
        self.folder.keep_addresses(ports.addresses)
        # The demo's nightly job could not ping while Picket was stopped; it does before its run.
        await api.ping(PING_TOKEN)
        wanted = starter_checks(target.ports, location=location)
        await update_checks(api, wanted)
        others = frozenset(str(one["id"]) for one in await list_agents(api))
        agent = await self._child(self._agent_program(ports, target))
        types = AgentTypes(api, others=others)
        # Only now: the first run of a check is due at once, and somebody should be there for it.
        await _until(types.look, of=agent)
        set_up = partial(set_up_checks, api, wanted, types)
        await set_up()
        return LocalPicket(
            target=target,
            service=service,
            agent=agent,
            api=api,
            types=types,
            set_up=set_up,
            ports=ports,
            moves=describe_moves(self.last, ports.addresses, requested_port=self.port),
        )

    async def _target(self) -> DemoTarget:
        opening = demo_target(self.folder.path, self.folder.demo_ports())
        target = await self.stack.enter_async_context(opening)
        self.folder.keep_demo_ports(target.ports)
        self.folder.make_keys()
        return target

    async def _service(self) -> tuple[Ports, Child, PublicApi, str]:
        """The running service, and the location that it has; on another port, if need be."""
        last = [self.last.service_port] if self.last.service_port else []
        wanted = [self.port] if self.port else [*last, USUAL_PORT]
        while True:
            ports = Ports.free(wanted=wanted, ping=self.last.ping_port)
            alerts = alert_settings(os.environ)
            program = service_program(self.folder, port=ports.service, alerts=alerts)
            service = await self._child(program)
            opening = PublicApi(ports.service_url, self.folder.api_key())
            api = await self.stack.enter_async_context(opening)
            try:
                asking = partial(_first_location, api, self.folder)
                return ports, service, api, await _until(asking, of=service)
            except CommandError:
                if ports.service == self.port or not await _has_lost_port(service, ports.service):
                    raise
                wanted = [port for port in wanted if port != ports.service]

    def _agent_program(self, ports: Ports, target: DemoTarget) -> Program:
        return agent_program(
            self.folder,
            ports,
            authority=target.certificate.authority,
            secrets=location_secrets(os.environ),
        )

    async def _child(self, program: Program) -> Child:
        child = await Child.start(program)
        self.stack.push_async_callback(child.stop, limit_s=_STOP_LIMIT_S)
        return child


def service_program(
    folder: DataDir, *, port: int, alerts: Mapping[str, str] = MappingProxyType({})
) -> Program:
    """The service on loopback, with the folder's keys as its first ones.

    `alerts`: its settings that say how alerts leave.
    """
    return Program(
        module="service",
        log=folder.logs / "service.log",
        settings={
            **alerts,
            "SERVICE_HOST": HOST,
            "SERVICE_PORT": str(port),
            "TRACE_VIEWER_PORT": "0",
            "SERVICE_DATA_DIR": str(folder.service),
            # What shows results as they come asks for those of a dozen checks each second.
            "RESULT_LISTS_PER_MINUTE": "600",
            "REGION_LOCATIONS": "*=default",
            "FIRST_API_KEY_FILE": str(folder.api_key_file),
            "FIRST_LOCATION_KEY_FILE": str(folder.location_key_file),
        },
    )


def alert_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """What the service may use of our environment."""
    return {name: environ[name] for name in _ALERTS if name in environ}


def location_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """What scripts may read of our environment; files are named, not opened."""
    return {name: environ[name] for name in environ if name.startswith(SECRET_PREFIX)}


def agent_program(
    folder: DataDir, ports: Ports, *, authority: Path, secrets: Mapping[str, str]
) -> Program:
    """An agent of the folder's location, which trusts the demo target's authority.

    `secrets`: its `SERVICE_SECRET_*`.
    """
    return Program(
        module="agent",
        log=folder.logs / "agent.log",
        settings={
            **secrets,
            "API_KEY_FILE": str(folder.location_key_file),
            "SERVICE_URL": ports.service_url,
            "AGENT_HEALTH_HOST": HOST,
            "AGENT_HEALTH_PORT": str(ports.health),
            "HEARTBEAT_HOST": HOST,
            "HEARTBEAT_PORT": str(ports.ping),
            "AGENT_DATA_DIR": str(folder.agent),
            "EXTRA_CA_CERTS": str(authority),
            "UPTIME_CONCURRENCY": str(_SLOTS),
            "SHUTDOWN_GRACE_S": "4",
        },
    )


async def _first_location(api: PublicApi, folder: DataDir) -> str:
    """The slug of the location that the service made at its first start."""
    try:
        return str((await api.locations())[0]["slugName"])
    except ApiRefusedError as refused:
        if refused.status != HTTPStatus.UNAUTHORIZED:
            raise
        raise CommandError(
            f"the service does not know the key in {folder.api_key_file}; restore the key, "
            "or start over with --fresh",
            ExitCode.KEY_REFUSED,
        ) from refused


async def _has_lost_port(service: Child, port: int) -> bool:
    """Whether it ended because another program took the port after it was chosen.

    Any answer then came from that program.
    """
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(service.wait(), _END_LIMIT_S)
    return service.exit_code is not None and not is_port_free(port)


async def _until(ask: Callable[[], Awaitable[AnswerT]], *, of: Child) -> AnswerT:
    """Call `ask` until it returns something true, and return that.

    Raises:
        ChildDiedError: the child that it depends on ended.
        CommandError: that took too long.
    """
    try:
        async with asyncio.timeout(_START_LIMIT_S):
            while of.exit_code is None:
                with contextlib.suppress(ApiUnreachableError):
                    if answer := await ask():
                        return answer
                await asyncio.sleep(_ASK_AGAIN_S)
    except TimeoutError as problem:
        raise CommandError(
            f"the {of.name} runs, and was not ready within {_START_LIMIT_S:g} s: the machine is"
            f" very busy, or {of.log} says why",
            ExitCode.OWN_FAULT,
        ) from problem
    raise ChildDiedError(of)
