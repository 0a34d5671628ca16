"""`picket run`: one check from a file, run here and now, without a service."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from rich.text import Text

from agent.envelopes import without_details
from agent.settings import BadSettingsError, Settings, read_settings
from contract.checks import ApiSpec, CheckSpec, Lane, check_type, deadline_ms, lane
from contract.job import Job
from contract.result import Outcome, Result, Status
from contract.scripted import PlaywrightSpec
from picket.check_file import CheckFile, load
from picket.errors import CommandError, ExitCode
from picket.kept_files import keep, prepare
from picket.ran_on import trace_commands
from picket.report import report
from picket.suite_folder import packed
from picket.terminal import Terminal
from runners.kit.dns.resolve import DnsServerResolver, SystemResolver
from runners.kit.execute import execute
from runners.kit.failures import MachineError
from runners.kit.harness import Harness, missing_for, open_harness
from runners.kit.http.roots import NoRootsError
from runners.kit.isolation.workspace import Workspace
from runners.kit.job_environment import local_environment
from runners.kit.leak_scan.door import Clean
from runners.kit.leak_scan.leak import LeakError, UnscannableError
from runners.kit.network import open_network
from runners.kit.runner import Network, RunContext
from runners.kit.scripts.runtimes import find_runtimes
from runners.kit.scrubbing.scrub import Scrubber
from runners.kit.suites.places import SuitePlaces
from runners.registry import RUNNABLE, runner_for

_HERE: Final = "here"
"""Stands for ids and places that a run without a service does not have."""
_DEADLINE_SLACK_S: Final = 1.0
"""The runner ends by itself at the time limit; this is for the one that does not."""
_GOOD: Final = frozenset({Status.PASSED, Status.DEGRADED})


class NoPings:
    """The ping book of a process that takes no pings."""

    def silent_for_s(self, token: str) -> float | None:  # noqa: ARG002 - the protocol has it
        """Nobody pinged here."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What a person may choose for a run."""

    as_json: bool = False
    timeout_s: float | None = None
    """The longest that the run may take. None: as long as its type may."""
    artifacts: Path | None = None
    """Where to put the files that it leaves. None: they go."""


def run_file(source: str, options: RunOptions) -> int:
    """Run the file's check once and print its result; gives the exit code.

    Raises:
        CommandError: the file or a setting is wrong, or a fault of ours kept us from looking.
    """
    check = load(source)
    settings = settings_for_runs(os.environ)
    _hold_runnable(check)
    if options.artifacts is not None:
        prepare(options.artifacts)
    with ExitStack() as stack:
        suites: SuitePlaces | None = None
        spec = check.spec
        if check.suite is not None and isinstance(spec, PlaywrightSpec):
            suites, sha256 = stack.enter_context(packed(check.suite, os.environ))
            spec = msgspec.structs.replace(spec, bundle_sha256=sha256)
        job = _job(check, spec, timeout_s=options.timeout_s)
        clean = _seen(job, settings, suites, options.artifacts)
    _print(clean, check.name, options)
    return ExitCode.OK if clean.result.outcome.status in _GOOD else ExitCode.FAILED


def _seen(
    job: Job, settings: Settings, suites: SuitePlaces | None, artifacts: Path | None
) -> Clean:
    """What came of the run, its files put where they are wanted."""
    workspace = Workspace()
    hidden = {**settings.service_secrets, **settings.proxy_passwords()}
    scrubber = Scrubber(hidden.values(), sensitive_headers=settings.sensitive_headers)
    try:
        result = asyncio.run(_look(job, settings, workspace, suites))
        if artifacts is not None:
            outcome = keep(
                result.outcome, artifacts, job=job, workspace=workspace, scrubber=scrubber
            )
            result = msgspec.structs.replace(result, outcome=outcome)
    except NoRootsError as problem:
        raise CommandError(str(problem)) from problem
    finally:
        workspace.remove()
    return _cleaned(result, job, workspace, scrubber)


def _cleaned(result: Result, job: Job, workspace: Workspace, scrubber: Scrubber) -> Clean:
    if workspace.unsearchable_because is not None:
        result = without_details(result, workspace.unsearchable_because)
    clean = partial(
        scrubber.clean, job=job, found=workspace.secrets, typed_among=workspace.typed_among
    )
    try:
        return clean(result)
    except (LeakError, UnscannableError) as problem:
        return clean(without_details(result, str(problem)))


def settings_for_runs(environ: Mapping[str, str]) -> Settings:
    """The agent's settings as far as they concern checks; a run needs no service and no key.

    Raises:
        CommandError: one of them is wrong.
    """
    needed = {"API_KEY": "pl_none", "SERVICE_URL": "http://127.0.0.1"}
    others = {name: environ[name] for name in environ if name.removesuffix("_FILE") not in needed}
    try:
        return read_settings(others | needed)
    except BadSettingsError as bad:
        raise CommandError("\n".join(bad.problems)) from bad


def _job(check: CheckFile, spec: CheckSpec, *, timeout_s: float | None) -> Job:
    limit_s = timeout_s or deadline_ms(spec) / 1000
    return Job(
        job_id=_HERE,
        fence=1,
        lease_s=limit_s,
        run_id=_HERE,
        check_id=_HERE,
        check_name=check.name,
        location=_HERE,
        scheduled_for=datetime.now(UTC),
        deadline_s=limit_s,
        spec=spec,
        variables=check.variables,
        client_certificates=check.client_certificates,
        proxy_url=check.proxy_url,
    )


def _hold_runnable(check: CheckFile) -> None:
    kind = check_type(check.spec)
    if kind not in RUNNABLE:
        raise CommandError(
            f"this version has no runner for {kind} checks; "
            f"it has runners for {', '.join(sorted(RUNNABLE))}",
            ExitCode.OWN_FAULT,
        )


@asynccontextmanager
async def _scripts_for(
    job: Job, settings: Settings, suites: SuitePlaces | None
) -> AsyncIterator[Harness | None]:
    """What the check's scripts run with. None: it has none.

    Raises:
        CommandError: something that they need is not there.
    """
    if lane(job.spec) is Lane.UPTIME:
        yield None
        return
    async with AsyncExitStack() as stack:
        found = find_runtimes(settings.runtimes_dir, settings.chromium_path)
        opening = open_harness(found, extra_roots=settings.extra_ca_certs, suites=suites)
        try:
            harness = await stack.enter_async_context(opening)
        except OSError as problem:
            raise CommandError(str(problem), ExitCode.OWN_FAULT) from problem
        with_scripts = isinstance(job.spec, ApiSpec)
        missing = missing_for(check_type(job.spec), harness, with_scripts=with_scripts)
        if missing is not None:
            raise CommandError(missing.sentence, ExitCode.OWN_FAULT)
        yield harness


async def _look(
    job: Job, settings: Settings, workspace: Workspace, suites: SuitePlaces | None
) -> Result:
    patient = msgspec.structs.replace(job, deadline_s=job.deadline_s + _DEADLINE_SLACK_S)
    async with _network_for(job, settings, suites) as network:
        ctx = _context(job, network, workspace, secrets=settings.service_secrets)
        started_at, began_s = datetime.now(UTC), time.monotonic()
        try:
            outcome = await execute(patient, runner_for(job.spec), ctx)
        except MachineError as problem:
            raise CommandError(str(problem), ExitCode.OWN_FAULT) from problem
    return _result(job, outcome, started_at=started_at, took_s=time.monotonic() - began_s)


@asynccontextmanager
async def _network_for(
    job: Job, settings: Settings, suites: SuitePlaces | None
) -> AsyncIterator[Network]:
    """What runners look through; scripts run with what they need."""
    resolver = SystemResolver() if settings.use_os_dns_resolver else DnsServerResolver()
    roots = settings.extra_ca_certs.read_text() if settings.extra_ca_certs else None
    async with (
        _scripts_for(job, settings, suites) as harness,
        open_network(
            settings.egress, resolver=resolver, extra_ca_pem=roots, harness=harness
        ) as network,
    ):
        yield network


def _context(
    job: Job, network: Network, workspace: Workspace, *, secrets: Mapping[str, str]
) -> RunContext:
    return RunContext(
        network=network,
        pings=NoPings(),
        timeout_s=job.deadline_s,
        variables=job.variables,
        environment=local_environment(job),
        location_secrets=secrets,
        client_certificates=job.client_certificates,
        proxy_url=job.proxy_url,
        workspace=workspace,
        keeps_files=True,
    )


def _result(job: Job, outcome: Outcome, *, started_at: datetime, took_s: float) -> Result:
    return Result(
        job_id=job.job_id,
        fence=job.fence,
        run_id=job.run_id,
        check_id=job.check_id,
        check_type=check_type(job.spec),
        agent_id=_HERE,
        started_at=started_at,
        started_after_s=0,
        took_s=took_s,
        outcome=outcome,
    )


def _print(clean: Clean, name: str, options: RunOptions) -> None:
    console = Terminal()
    if options.as_json:
        body = msgspec.json.format(clean.body, indent=2)
        console.file.write(body.decode() + "\n")
        return
    console.print(report(clean.result, name=name))
    if options.artifacts is not None:
        _print_traces(console, trace_commands(clean.result.outcome, options.artifacts))


def _print_traces(console: Terminal, commands: Sequence[str]) -> None:
    """Whole and at the beginning of a line, however narrow the terminal is: they are copied."""
    if commands:
        console.print(Text("\n  Traces", style="bold"))
    for command in commands:
        console.print(Text(command), soft_wrap=True)
