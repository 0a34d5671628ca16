"""The boot check: one real check of every type against targets of our own on loopback.

A type that fails here is reported with its cause and remedy, and not claimed; the others go on.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from agent.boot_cause import summarize
from agent.boot_suite import BOOT_SUITE, with_boot_suite
from agent.boot_targets import PAGE, Targets, open_targets
from contract.agent_api import UnavailableType, name_checks
from contract.assertions import Assertion, Comparison, Source
from contract.checks import (
    ApiSpec,
    CheckSpec,
    CheckType,
    DnsSpec,
    HeartbeatSpec,
    IcmpSpec,
    Lane,
    TcpSpec,
    UrlSpec,
    lane,
)
from contract.job import Job
from contract.requests import DnsRequest, HttpRequest, IcmpRequest, IpFamily, TcpRequest
from contract.result import FailureKind, Outcome, Status
from contract.scripted import BrowserSpec, MultiStepSpec
from runners.kit.egress.rules import EgressRules
from runners.kit.execute import execute
from runners.kit.harness import Harness, missing_for
from runners.kit.icmp.socket import PingerUnavailableError
from runners.kit.isolation.host_error import HostError
from runners.kit.isolation.memory_promises import TooLittleMemoryError
from runners.kit.isolation.workspace import Workspace
from runners.kit.network import open_network
from runners.kit.runner import Network, RunContext, Runner

LIMIT_S: Final = 5.0
SCRIPT_LIMIT_S: Final = 30.0
"""For types that start Node or a browser: on a cold disk that takes seconds."""
TRIES: Final = 3
"""A host that stands still while the agent starts must not cost it a type for its whole life."""
_TOKEN: Final = "boot-check"  # noqa: S105 - a ping token that nobody else uses
ICMP_REMEDY: Final = (
    "run `sysctl -w net.ipv4.ping_group_range='0 2147483647'` as root (for a container "
    "`docker run --sysctl` with the same), or give the agent CAP_NET_RAW"
)
_MEMORY_REMEDY: Final = "give the agent's container or machine more memory"
_CRASH_REMEDY: Final = "see boot.check_crashed in the agent's log"
_REMEDY: Final = "fix what it names; the agent tries again by itself"
_BUSY_REMEDY: Final = "wait: the agent tries again by itself"
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
        specs = _specs(targets)
        tasks = [
            group.create_task(
                _check(one, specs.get(one), runner_for=runner_for, network=network),
                name=f"boot-check-{one.check_type.value}",
            )
            for one in sorted(here, key=_order)
        ]
    return (*(task.result() for task in tasks), *missing)


def find_missing(
    trials: Iterable[Trial], harness: Harness | None, problem: tuple[str, str] | None
) -> tuple[TypeChecked, ...]:
    """Those of the types that need no try: the machine lacks something for them."""
    lacking = (
        (
            one,
            missing_for(one.check_type, harness, with_scripts=one.with_scripts, problem=problem),
        )
        for one in sorted(trials, key=_order)
    )
    return tuple(
        TypeChecked(trial=trial, unavailable=why) for trial, why in lacking if why is not None
    )


def _order(trial: Trial) -> tuple[CheckType, bool]:
    return trial.check_type, trial.with_scripts


@asynccontextmanager
async def _open_network(targets: Targets, harness: Harness | None) -> AsyncIterator[Network]:
    with ExitStack() as stack:
        if harness is not None:
            harness = stack.enter_context(with_boot_suite(harness, _page_url(targets)))
        async with open_network(
            EgressRules(), resolver=_LiteralResolver(), harness=harness
        ) as network:
            yield network


async def _check(
    trial: Trial, spec: CheckSpec | None, *, runner_for: RunnerFor, network: Network
) -> TypeChecked:
    began = time.perf_counter()
    if spec is None:
        problem: _Problem | None = _Problem("this version has no boot check for them", _REMEDY)
    else:
        job = _job(trial.check_type, spec)
        problem = await _problem_with(job, runner_for=runner_for, network=network)
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


async def _problem_with(job: Job, *, runner_for: RunnerFor, network: Network) -> _Problem | None:
    """Why the job did not come out well. None: it did."""
    problem: _Problem | None = None
    try:
        for _ in range(TRIES):
            problem = _problem_of(await _look(job, runner_for(job.spec), network))
            if problem is None:
                return None
    except PingerUnavailableError as refused:
        return _Problem(str(refused).partition(": ")[0], ICMP_REMEDY)
    except TooLittleMemoryError as refused:
        return _Problem(summarize(str(refused)), _MEMORY_REMEDY)
    except Exception as crash:  # noqa: BLE001 - a job's task: one broken type stops no other
        return _problem_of_crash(crash)
    return problem


def _problem_of_crash(crash: Exception) -> _Problem:
    """Only our own errors know a remedy."""
    cause, remedy = summarize(str(crash)) or type(crash).__name__, _CRASH_REMEDY
    if isinstance(crash, HostError):
        cause, remedy = crash.cause, crash.remedy
    return _Problem(f"the check of it broke: {cause}", remedy, crash=crash)


def _problem_of(outcome: Outcome) -> _Problem | None:
    """What the outcome says of this machine. None: all is well."""
    if outcome.status in _GOOD:
        return None
    failure = outcome.failure
    said = summarize(failure.message) if failure else f"the check of it is {outcome.status}"
    is_late = outcome.status is Status.TIMED_OUT or (
        failure is not None and failure.kind is FailureKind.TIMEOUT
    )
    if is_late and (load := load_words()) is not None:
        return _Problem(f"the machine is busy ({load}): {said}", _BUSY_REMEDY, is_busy=True)
    return _Problem(said, _REMEDY)


def load_words() -> str | None:
    """How much more this machine has to do than it can at once. None: it has not."""
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    return f"load {load:.1f} on {processors} processors" if load > processors else None


async def _look(job: Job, runner: Runner[Any], network: Network) -> Outcome:
    workspace = Workspace()
    ctx = RunContext(
        network=network, pings=_FreshPing(), timeout_s=job.deadline_s, workspace=workspace
    )
    try:
        return await execute(job, runner, ctx)
    finally:
        await asyncio.to_thread(workspace.remove)


def _job(kind: CheckType, spec: CheckSpec) -> Job:
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


def _specs(targets: Targets) -> Mapping[Trial, CheckSpec]:
    """One check per type that touches as much of its runner as loopback can show."""
    host = targets.host
    page_url = _page_url(targets)
    page = HttpRequest(url=f"{page_url}?of={{{{$UUID}}}}")
    dns = DnsRequest(query=targets.name, name_server=host, port=targets.dns_port)
    looks_at_json = _equals(Source.JSON_BODY, "true", at="$.ok")
    api = ApiSpec(request=page, assertions=(_equals(Source.TEXT_BODY, PAGE), looks_at_json))
    specs: dict[CheckType, CheckSpec] = {
        CheckType.URL: UrlSpec(request=page, assertions=(_equals(Source.STATUS_CODE, "200"),)),
        CheckType.API: api,
        CheckType.TCP: TcpSpec(
            request=TcpRequest(hostname=host, port=targets.echo_port, data="boot"),
            assertions=(_equals(Source.RESPONSE_DATA, "boot"),),
        ),
        CheckType.DNS: DnsSpec(request=dns, assertions=(_equals(Source.RESPONSE_CODE, "NOERROR"),)),
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


def _page_url(targets: Targets) -> str:
    return f"http://{targets.host}:{targets.http_port}/boot"


def _equals(source: Source, target: str, *, at: str = "") -> Assertion:
    return Assertion(source=source, comparison=Comparison.EQUALS, target=target, property=at)
