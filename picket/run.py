"""`picket run`: one check from a file, run here and now, without a service."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Final

import msgspec

from agent.settings import BadSettingsError, Settings, read_settings
from contract.checks import Lane, check_type, deadline_ms, lane
from contract.job import Job
from contract.result import Outcome, Result, Status
from picket.check_file import CheckFile, load
from picket.errors import CommandError, ExitCode
from picket.report import report
from picket.terminal import Terminal
from runners.kit.execute import execute
from runners.kit.harness import NO_RUNTIME, Harness, missing_for, open_harness
from runners.kit.http_roots import NoRootsError
from runners.kit.icmp_socket import PingerUnavailableError
from runners.kit.job_environment import local_environment
from runners.kit.network import open_network
from runners.kit.resolve import DnsServerResolver, SystemResolver
from runners.kit.runner import RunContext
from runners.kit.runtimes import MissingRuntimeError, find_runtimes
from runners.kit.script_run import NodeBrokeError
from runners.kit.scrub import Clean, Scrubber
from runners.kit.workspace import Workspace
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


def run_file(source: str, *, as_json: bool, timeout_s: float | None) -> int:
    """Run the file's check once and print its result; gives the exit code.

    Raises:
        CommandError: the file or a setting is wrong, or a fault of ours kept us from looking.
    """
    check = load(source)
    settings = settings_for_runs(os.environ)
    job = _job(check, timeout_s=timeout_s)
    _hold_runnable(check)
    workspace = Workspace()
    try:
        result = asyncio.run(_look(job, settings, workspace))
    except NoRootsError as problem:
        raise CommandError(str(problem)) from problem
    finally:
        workspace.remove()
    scrubber = Scrubber(settings.service_secrets.values())
    clean = scrubber.clean(result, job=job, found=workspace.secrets)
    _print(clean, check.name, as_json=as_json)
    return ExitCode.OK if clean.result.outcome.status in _GOOD else ExitCode.FAILED


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


def _job(check: CheckFile, *, timeout_s: float | None) -> Job:
    limit_s = timeout_s or deadline_ms(check.spec) / 1000
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
        spec=check.spec,
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
async def _scripts_for(job: Job, settings: Settings) -> AsyncIterator[Harness | None]:
    """What the check's scripts run with. None: it has none.

    Raises:
        CommandError: something that they need is not there.
    """
    if lane(job.spec) is Lane.UPTIME:
        yield None
        return
    async with AsyncExitStack() as stack:
        found = find_runtimes(settings.runtimes_dir, settings.chromium_path)
        opening = open_harness(found, extra_roots=settings.extra_ca_certs)
        try:
            harness = await stack.enter_async_context(opening)
        except OSError as problem:
            raise CommandError(str(problem), ExitCode.OWN_FAULT) from problem
        missing = NO_RUNTIME if harness is None else missing_for(check_type(job.spec), harness)
        if missing is not None:
            raise CommandError(missing, ExitCode.OWN_FAULT)
        yield harness


async def _look(job: Job, settings: Settings, workspace: Workspace) -> Result:
    resolver = SystemResolver() if settings.use_os_dns_resolver else DnsServerResolver()
    roots = settings.extra_ca_certs.read_text() if settings.extra_ca_certs else None
    async with (
        _scripts_for(job, settings) as harness,
        open_network(
            settings.egress, resolver=resolver, extra_ca_pem=roots, harness=harness
        ) as network,
    ):
        ctx = RunContext(
            network=network,
            pings=NoPings(),
            timeout_s=job.deadline_s,
            variables=job.variables,
            environment=local_environment(job),
            client_certificates=job.client_certificates,
            proxy_url=job.proxy_url,
            workspace=workspace,
            keeps_files=True,
        )
        started_at, began_s = datetime.now(UTC), time.monotonic()
        try:
            patient = msgspec.structs.replace(job, deadline_s=job.deadline_s + _DEADLINE_SLACK_S)
            outcome = await execute(patient, runner_for(job.spec), ctx)
        except (PingerUnavailableError, MissingRuntimeError, NodeBrokeError) as problem:
            raise CommandError(str(problem), ExitCode.OWN_FAULT) from problem
    return _result(job, outcome, started_at=started_at, took_s=time.monotonic() - began_s)


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


def _print(clean: Clean, name: str, *, as_json: bool) -> None:
    console = Terminal()
    if as_json or not console.is_terminal:
        body = msgspec.json.format(clean.body, indent=2)
        console.file.write(body.decode() + "\n")
    else:
        console.print(report(clean.result, name=name))
