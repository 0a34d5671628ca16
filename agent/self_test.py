"""The boot check: one real check of every type, against servers of our own on loopback.

A type that fails here is reported with its cause and remedy, and not claimed; the others go on.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from contract.agent_api import UnavailableType, name_checks
from contract.assertions import Assertion, Comparison, Source
from contract.checks import (
    SPEC_TYPES,
    ApiSpec,
    BrowserSpec,
    CheckSpec,
    CheckType,
    DnsRequest,
    DnsSpec,
    HeartbeatSpec,
    IcmpRequest,
    IcmpSpec,
    Lane,
    MultiStepSpec,
    PlaywrightSpec,
    TcpRequest,
    TcpSpec,
    UrlSpec,
    lane,
)
from contract.job import Job
from contract.requests import HttpRequest, IpFamily
from contract.result import FailureKind, Outcome, Status
from runners.execute import execute
from runners.net.egress.rules import EgressRules
from runners.net.icmp.socket import ICMP_REMEDY, PingerUnavailableError
from runners.runner import RunContext, Runner
from runners.scripting.harness import Harness, find_unavailable
from runners.scripting.suites.bundle_archive import pack
from runners.scripting.suites.resources import SuiteOptions, open_suites
from runners.tools import Tools, open_tools
from sandbox.errors import HostError
from sandbox.memory import TooLittleMemoryError
from sandbox.workspace import Workspace, temporary_folder

HOST: Final = "127.0.0.1"
NAME: Final = "boot.picket.test."
_HEAD_LIMIT: Final = 8_192
_ECHO_LIMIT: Final = 1_024
_READ_LIMIT_S: Final = 5.0
PAGE: Final = '{"ok":true}'
"""What the page holds."""
_ANSWER: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(PAGE), PAGE.encode())
)

_DNS_HEAD_BYTES: Final = 12
_ANSWER_HEAD: Final = bytes.fromhex("8580 0001 0001 0000 0000")
"""An authoritative NOERROR with one question and one answer."""
_ANSWER_RECORD: Final = bytes.fromhex("c00c 0001 0001 0000003c 0004 7f000001")
"""The question's name: A, IN, 60 s, 127.0.0.1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Where the servers listen."""

    host: str = HOST
    http_port: int
    echo_port: int
    dns_port: int
    name: str = NAME
    """The one name that the name server knows."""


@asynccontextmanager
async def open_targets() -> AsyncIterator[Targets]:
    """All three servers, for as long as the block lasts."""
    loop = asyncio.get_running_loop()
    page = await asyncio.start_server(_serve_page, HOST, 0, limit=_HEAD_LIMIT)
    echo = await asyncio.start_server(_serve_echo, HOST, 0)
    names, _ = await loop.create_datagram_endpoint(_NameServer, local_addr=(HOST, 0))
    try:
        yield Targets(
            http_port=page.sockets[0].getsockname()[1],
            echo_port=echo.sockets[0].getsockname()[1],
            dns_port=names.get_extra_info("sockname")[1],
        )
    finally:
        names.close()
        for server in (page, echo):
            server.close()


async def _serve_page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        async with asyncio.timeout(_READ_LIMIT_S):
            await reader.readuntil(b"\r\n\r\n")
        writer.write(_ANSWER)
    except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
        return
    finally:
        writer.close()


async def _serve_echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        async with asyncio.timeout(_READ_LIMIT_S):
            writer.write(await reader.read(_ECHO_LIMIT))
    except (OSError, TimeoutError):
        return
    finally:
        writer.close()


class _NameServer(asyncio.DatagramProtocol):
    """Answers every question with one address."""

    def connection_made(  # type: ignore[override]  # a datagram endpoint passes no other kind
        self, transport: asyncio.DatagramTransport
    ) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        # By hand, since dnspython's messages cost the idle agent 1.8 MB. Who asks is our own DNS
        # runner, whose queries are a header and one question.
        head = data[:2] + _ANSWER_HEAD
        self._transport.sendto(head + data[_DNS_HEAD_BYTES:] + _ANSWER_RECORD, addr)


LIMIT_S: Final = 5.0
SCRIPT_LIMIT_S: Final = 30.0
"""For types that start Node or a browser: on a cold disk that takes seconds."""
TRIES: Final = 3
"""A host that stands still while the agent starts must not cost it a type for its whole life."""
_TOKEN: Final = "boot-check"  # noqa: S105 - a ping token that nobody else uses
_MEMORY_REMEDY: Final = "give the agent's container or machine more memory"
_CRASH_REMEDY: Final = "see boot.check_crashed in the agent's log"
_REMEDY: Final = "fix the problem; the agent tries again automatically"
_BUSY_REMEDY: Final = "wait: the agent tries again automatically"
_PAGE_SCRIPT: Final = """
const { chromium } = require('playwright');
const browser = await chromium.launch();
await (await browser.newPage()).goto('URL');
"""
_REQUEST_SCRIPT: Final = """
const { request } = require('playwright');
const answer = await (await request.newContext()).get('URL');
if (!answer.ok()) throw new Error(`The answer is ${answer.status()}.`);
"""
_SETUP_SCRIPT: Final = "request.headers['x-boot'] = 'yes';"
_GOOD: Final = frozenset({Status.PASSED, Status.DEGRADED})

RunnerFor = Callable[[CheckSpec], Runner[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What to try: a type, or its checks with scripts."""

    check_type: CheckType
    with_scripts: bool = False

    @property
    def what(self) -> str:
        """Which checks they are."""
        return name_checks(self.check_type, with_scripts=self.with_scripts)

    @property
    def needs_harness(self) -> bool:
        """Whether it runs a script, by Node or a browser."""
        return self.with_scripts or SPEC_TYPES[self.check_type].is_main


API_WITH_SCRIPTS: Final = Trial(check_type=CheckType.API, with_scripts=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeChecked:
    """How the check of one type came out."""

    trial: Trial
    unavailable: UnavailableType | None
    """Why this agent cannot run it. None: it can."""
    is_busy: bool = False
    """It was late on a machine that has more to do than it can: no fault was found."""
    crash: Exception | None = None
    """What broke its check. None: nothing did."""
    took_ms: float = 0.0
    """0: it was not tried, as the machine lacks something."""

    @property
    def works(self) -> bool:
        """Whether such jobs may be claimed."""
        return self.unavailable is None


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why a job did not come out well."""

    cause: str
    remedy: str
    is_busy: bool = False
    crash: Exception | None = None


class _FreshPing:
    """A ping book in which the boot check's token has just been heard."""

    def silent_for_s(self, token: str) -> float | None:
        return 0.0 if token == _TOKEN else None


class _LiteralResolver:
    """The targets are addresses; no name is looked up."""

    async def resolve(self, hostname: str, family: IpFamily) -> tuple[str, ...]:
        """The address itself."""
        del family
        return (hostname,)


async def boot_check(
    trials: Iterable[Trial],
    *,
    runner_for: RunnerFor,
    harness: Harness | None = None,
    problem: tuple[str, str] | None = None,
) -> tuple[TypeChecked, ...]:
    """Check every one of the types, all at once, each within its limit, up to three times.

    Not tried is what the machine lacks something for. `problem`: why there is no harness, and the
    remedy. None: there is no runtime.
    The agent's egress rules do not count here: a rule against loopback is no defect of the agent.
    """
    wanted = set(trials)
    missing = find_missing(wanted, harness, problem)
    here = wanted - {one.trial for one in missing}
    if not here:
        return missing
    async with (
        open_targets() as targets,
        _open_network(targets, harness) as network,
        asyncio.TaskGroup() as group,
    ):
        specs = _build_specs(targets)
        tasks = [
            group.create_task(
                _check(one, specs.get(one), runner_for=runner_for, network=network),
                name=f"boot-check-{one.check_type.value}",
            )
            for one in sorted(here, key=_sort_key)
        ]
    return (*(task.result() for task in tasks), *missing)


def find_missing(
    trials: Iterable[Trial], harness: Harness | None, problem: tuple[str, str] | None
) -> tuple[TypeChecked, ...]:
    """Those of the types that need no try: the machine lacks something for them."""
    lacking = (
        (
            one,
            find_unavailable(
                one.check_type, harness, with_scripts=one.with_scripts, problem=problem
            ),
        )
        for one in sorted(trials, key=_sort_key)
    )
    return tuple(
        TypeChecked(trial=trial, unavailable=why) for trial, why in lacking if why is not None
    )


def _sort_key(trial: Trial) -> tuple[CheckType, bool]:
    return trial.check_type, trial.with_scripts


@asynccontextmanager
async def _open_network(targets: Targets, harness: Harness | None) -> AsyncIterator[Tools]:
    with ExitStack() as stack:
        if harness is not None:
            harness = stack.enter_context(open_boot_suite(harness, _build_page_url(targets)))
        async with open_tools(
            EgressRules(), resolver=_LiteralResolver(), harness=harness
        ) as network:
            yield network


async def _check(
    trial: Trial, spec: CheckSpec | None, *, runner_for: RunnerFor, network: Tools
) -> TypeChecked:
    began = time.perf_counter()
    if spec is None:
        problem: _Problem | None = _Problem("this version has no boot check for them", _REMEDY)
    else:
        job = _build_job(trial.check_type, spec)
        problem = await _try_job(job, runner_for=runner_for, network=network)
    took_ms = (time.perf_counter() - began) * 1000
    if problem is None:
        return TypeChecked(trial=trial, unavailable=None, took_ms=took_ms)
    unavailable = UnavailableType(
        type=trial.check_type,
        cause=problem.cause,
        remedy=problem.remedy,
        only_with_scripts=trial.with_scripts,
    )
    return TypeChecked(
        trial=trial,
        unavailable=unavailable,
        is_busy=problem.is_busy,
        crash=problem.crash,
        took_ms=took_ms,
    )


async def _try_job(job: Job, *, runner_for: RunnerFor, network: Tools) -> _Problem | None:
    """Why the job did not come out well. None: it did."""
    problem: _Problem | None = None
    try:
        for _ in range(TRIES):
            problem = _find_problem(await _run_once(job, runner_for(job.spec), network))
            if problem is None:
                return None
    except PingerUnavailableError as refused:
        return _Problem(str(refused).partition("; ")[0], ICMP_REMEDY)
    except TooLittleMemoryError as refused:
        return _Problem(summarize(str(refused)), _MEMORY_REMEDY)
    except Exception as crash:  # noqa: BLE001 - a job's task: one broken type stops no other
        return _describe_crash(crash)
    return problem


def _describe_crash(crash: Exception) -> _Problem:
    """Only our own errors know a remedy."""
    cause, remedy = summarize(str(crash)) or type(crash).__name__, _CRASH_REMEDY
    if isinstance(crash, HostError):
        cause, remedy = crash.cause, crash.remedy
    return _Problem(f"the test check crashed: {cause}", remedy, crash=crash)


def _find_problem(outcome: Outcome) -> _Problem | None:
    """What the outcome says of this machine. None: all is well."""
    if outcome.status in _GOOD:
        return None
    failure = outcome.failure
    said = summarize(failure.message) if failure else f"the test check ended as {outcome.status}"
    is_late = outcome.status is Status.TIMED_OUT or (
        failure is not None and failure.kind is FailureKind.TIMEOUT
    )
    if is_late and (load := describe_load()) is not None:
        return _Problem(f"the machine is busy ({load}): {said}", _BUSY_REMEDY, is_busy=True)
    return _Problem(said, _REMEDY)


def describe_load() -> str | None:
    """How much more this machine has to do than it can at once. None: it has not."""
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    return f"load {load:.1f} on {processors} processors" if load > processors else None


async def _run_once(job: Job, runner: Runner[Any], network: Tools) -> Outcome:
    workspace = Workspace()
    ctx = RunContext(
        network=network, pings=_FreshPing(), timeout_s=job.deadline_s, workspace=workspace
    )
    try:
        return await execute(job, runner, ctx)
    finally:
        await asyncio.to_thread(workspace.remove)


def _build_job(kind: CheckType, spec: CheckSpec) -> Job:
    limit_s = SCRIPT_LIMIT_S if lane(spec) is Lane.MAIN else LIMIT_S
    return Job(
        job_id=f"boot-{kind.value}",
        fence=1,
        lease_s=limit_s,
        run_id="boot",
        check_id="boot",
        check_name=f"Boot check of {kind.value}",
        location="boot",
        scheduled_for=datetime.now(UTC),
        deadline_s=limit_s,
        spec=spec,
    )


def _build_specs(targets: Targets) -> Mapping[Trial, CheckSpec]:
    """One check per type that touches as much of its runner as loopback can show."""
    host = targets.host
    page_url = _build_page_url(targets)
    page = HttpRequest(url=f"{page_url}?of={{{{$UUID}}}}")
    dns = DnsRequest(query=targets.name, name_server=host, port=targets.dns_port)
    looks_at_json = _expect(Source.JSON_BODY, "true", at="$.ok")
    api = ApiSpec(request=page, assertions=(_expect(Source.TEXT_BODY, PAGE), looks_at_json))
    specs: dict[CheckType, CheckSpec] = {
        CheckType.URL: UrlSpec(request=page, assertions=(_expect(Source.STATUS_CODE, "200"),)),
        CheckType.API: api,
        CheckType.TCP: TcpSpec(
            request=TcpRequest(hostname=host, port=targets.echo_port, data="boot"),
            assertions=(_ECHO,),
        ),
        CheckType.DNS: DnsSpec(request=dns, assertions=(_expect(Source.RESPONSE_CODE, "NOERROR"),)),
        CheckType.ICMP: IcmpSpec(request=IcmpRequest(hostname=host, ping_count=1)),
        CheckType.HEARTBEAT: HeartbeatSpec(period_s=60, grace_s=0, ping_token=_TOKEN),
        CheckType.BROWSER: BrowserSpec(script=_PAGE_SCRIPT.replace("URL", page_url)),
        CheckType.MULTI_STEP: MultiStepSpec(script=_REQUEST_SCRIPT.replace("URL", page_url)),
        CheckType.PLAYWRIGHT: BOOT_SUITE,
    }
    return {
        **{Trial(check_type=kind): spec for kind, spec in specs.items()},
        API_WITH_SCRIPTS: msgspec.structs.replace(api, setup_script=_SETUP_SCRIPT),
    }


def _build_page_url(targets: Targets) -> str:
    return f"http://{targets.host}:{targets.http_port}/boot"


_ECHO: Final = Assertion(source=Source.RESPONSE_DATA, comparison=Comparison.CONTAINS, target="boot")
"""Not EQUALS: more could come, so reading would go on for seconds."""


def _expect(source: Source, target: str, *, at: str = "") -> Assertion:
    return Assertion(source=source, comparison=Comparison.EQUALS, target=target, property=at)


_MOST_CHARS: Final = 300
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")
_CALL_LOG: Final = re.compile(r"^\s*Call log:.*", re.DOTALL | re.MULTILINE)
_BROWSER_LOGS: Final = re.compile(r"^\s*Browser logs:.*", re.DOTALL | re.MULTILINE)
_FRAMES: Final = re.compile(r"[\u2500-\u257f]+")
_SAID: Final = re.compile(r"^\[pid=\d+\]\[err\] (.*)", re.MULTILINE)
"""A line that the browser printed."""
_EXIT: Final = re.compile(r"<process did exit: (.*?)>")
_LOG_HEAD: Final = re.compile(r"^\[[\d:/.]+:(?P<level>[A-Z]+\d*):[^\]]*\] ?")
"""How a line of Chromium's log begins: process, thread, time, level and source line."""
_STACK: Final = re.compile(r"\s*(?:#\d+ 0x|\[end of stack trace\]|(?:\w+: [0-9a-f]{16}\s*)+$)")
_PID: Final = re.compile(r"[([]?\bpid[=: ]+\d+[])]?:? ?", re.IGNORECASE)
_OUR_FOLDER: Final = re.compile(r"/[\w./-]*/(?:new-)?picket-[a-z]+-\w{8}(?:/[^\s'\":;,]*)?")
"""A temporary folder of ours, or what is in it: another at each try."""
_TEMPORARY: Final = "a temporary file"


def summarize(text: str) -> str:
    """What is wrong, in one line: what the browser printed last where a browser did not start.

    Without what changes at each try: process ids and temporary folders of ours.
    """
    plain = _CALL_LOG.sub("", _ESCAPES.sub("", text))
    words = _find_last_line(plain)
    if words is None:
        words = _FRAMES.sub(" ", _BROWSER_LOGS.sub("", plain))
        if (ended := _EXIT.search(plain)) is not None:
            words = f"{words.strip()} ({ended[1]})"
    words = _OUR_FOLDER.sub(_TEMPORARY, _PID.sub("", words))
    line = " ".join("".join(one if one.isprintable() else " " for one in words).split())
    return line.rstrip(".") if len(line) <= _MOST_CHARS else f"{line[: _MOST_CHARS - 1]}…"


def _find_last_line(plain: str) -> str | None:
    """The fatal line of the browser, else its last one outside a stack. None: it said nothing."""
    said = [line for line in _SAID.findall(plain) if line.strip() and not _STACK.match(line)]
    heads = [_LOG_HEAD.match(line) for line in said]
    fatal = [
        line
        for line, head in zip(said, heads, strict=True)
        if head is not None and head["level"] == "FATAL"
    ]
    last = (fatal or said)[-1:]
    return _LOG_HEAD.sub("", last[0]) if last else None


_TEST: Final = """
const { test } = require('@playwright/test');

test('opens a page', async ({ page }) => {
  await page.goto('URL');
});
"""
_FILES: Final = {
    "package.json": '{"name": "boot", "private": true}',
    "package-lock.json": '{"name": "boot", "lockfileVersion": 3, "packages": {}}',
    "playwright.config.js": "module.exports = { workers: 1, retries: 0 };",
}


class _OneBundle:
    """Gives the boot check's bundle, whatever is asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def fetch(self, sha256: str) -> Path:
        """The bundle."""
        del sha256
        return self._path


BOOT_SUITE: Final = PlaywrightSpec(
    bundle_sha256="0" * 64,
    install_command='bin="$(dirname "$(command -v node)")"; '
    '"$bin/npm" --version && ln -s "$bin/../node_modules" node_modules',
)
"""The check that runs the suite."""


@contextmanager
def open_boot_suite(harness: Harness, url: str) -> Iterator[Harness]:
    """A harness whose only bundle is the boot check's, which opens this page; it blocks shortly.

    Raises:
        OSError: the disk refuses it.
    """
    with temporary_folder() as place:
        suite, bundle = place / "suite", place / "suite.tar.gz"
        suite.mkdir()
        for name, content in {**_FILES, "boot.spec.js": _TEST.replace("URL", url)}.items():
            (suite / name).write_text(content)
        pack(suite, bundle)
        places = SuiteOptions(bundles=_OneBundle(bundle), packages=place / "packages")
        yield replace(harness, suites=open_suites(places, harness.sandbox))
