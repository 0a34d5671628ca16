"""The boot check: one real check of every type against targets of our own on loopback.

A type that fails here is reported with what mends it, and not claimed; the others go on.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from agent.boot_suite import BOOT_SUITE, with_boot_suite
from agent.boot_targets import Targets, open_targets
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
    check_type,
    lane,
)
from contract.job import Job
from contract.requests import DnsRequest, HttpRequest, IcmpRequest, IpFamily, TcpRequest
from contract.result import Outcome, Status
from contract.scripted import BrowserSpec, MultiStepSpec
from runners.kit.egress.rules import EgressRules
from runners.kit.execute import execute
from runners.kit.harness import Harness
from runners.kit.icmp.socket import PingerUnavailableError
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
MENDS_ICMP: Final = (
    "Start the container with --sysctl net.ipv4.ping_group_range='0 2147483647', "
    "or as root with --cap-add=NET_RAW."
)
MENDS_MEMORY: Final = "Give the agent's container or machine more memory."
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
_GOOD: Final = frozenset({Status.PASSED, Status.DEGRADED})

RunnerFor = Callable[[CheckSpec], Runner[Any]]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeChecked:
    """How the check of one type came out."""

    check_type: CheckType
    problem: str | None
    """Why this agent cannot run the type, and what mends it. None: it can."""
    took_ms: float

    @property
    def works(self) -> bool:
        """Whether jobs of this type may be claimed."""
        return self.problem is None


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
    check_types: Iterable[CheckType], *, runner_for: RunnerFor, harness: Harness | None = None
) -> tuple[TypeChecked, ...]:
    """Check every one of the types, all at once, each within `LIMIT_S`, up to three times.

    The agent's egress rules do not count here: a rule against loopback is no defect of the agent.
    """
    wanted = sorted(set(check_types))
    async with (
        open_targets() as targets,
        _open_network(targets, harness) as network,
        asyncio.TaskGroup() as group,
    ):
        specs = _specs(targets)
        tasks = [
            group.create_task(
                _check(kind, specs.get(kind), runner_for=runner_for, network=network),
                name=f"boot-check-{kind.value}",
            )
            for kind in wanted
        ]
    return tuple(task.result() for task in tasks)


@asynccontextmanager
async def _open_network(targets: Targets, harness: Harness | None) -> AsyncIterator[Network]:
    with ExitStack() as stack:
        if harness is not None:
            harness = stack.enter_context(with_boot_suite(harness, _page_url(targets)))
        async with open_network(
            EgressRules(), resolver=_LiteralResolver(), harness=harness
        ) as network:
            yield network


def working_types(found: Iterable[TypeChecked]) -> tuple[CheckType, ...]:
    """The types to claim; each of the others is logged with what mends it."""
    found = tuple(found)
    for one in found:
        if one.problem is not None:
            log.warning("boot.type_unavailable", type=one.check_type.value, because=one.problem)
    return tuple(one.check_type for one in found if one.works)


async def _check(
    kind: CheckType, spec: CheckSpec | None, *, runner_for: RunnerFor, network: Network
) -> TypeChecked:
    began = time.perf_counter()
    if spec is None:
        problem: str | None = f"This version has no boot check for {kind.value}."
    else:
        problem = await _problem_with(_job(kind, spec), runner_for=runner_for, network=network)
    took_ms = (time.perf_counter() - began) * 1000
    return TypeChecked(check_type=kind, problem=problem, took_ms=took_ms)


async def _problem_with(job: Job, *, runner_for: RunnerFor, network: Network) -> str | None:
    """Why the job did not come out well. None: it did."""
    said = ""
    try:
        for _ in range(TRIES):
            outcome = await _look(job, runner_for(job.spec), network)
            if outcome.status in _GOOD:
                return None
            said = outcome.failure.message if outcome.failure else f"The check is {outcome.status}."
    except PingerUnavailableError as problem:
        return f"{str(problem).rstrip('.')}. {MENDS_ICMP}"
    except TooLittleMemoryError as problem:
        return f"{problem}. {MENDS_MEMORY}"
    except Exception as problem:  # a job's task: one broken type stops no other
        log.exception("boot.check_crashed", type=check_type(job.spec).value)
        return f"The check crashed: {type(problem).__name__}."
    return said


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


def _specs(targets: Targets) -> Mapping[CheckType, CheckSpec]:
    """One check per type that touches as much of its runner as loopback can show."""
    host = targets.host
    page_url = _page_url(targets)
    page = HttpRequest(url=f"{page_url}?of={{{{$UUID}}}}")
    dns = DnsRequest(query=targets.name, name_server=host, port=targets.dns_port)
    return {
        CheckType.URL: UrlSpec(request=page, assertions=(_equals(Source.STATUS_CODE, "200"),)),
        CheckType.API: ApiSpec(
            request=page, assertions=(_equals(Source.TEXT_BODY, '{"ok":true}'),)
        ),
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


def _page_url(targets: Targets) -> str:
    return f"http://{targets.host}:{targets.http_port}/boot"


def _equals(source: Source, target: str) -> Assertion:
    return Assertion(source=source, comparison=Comparison.EQUALS, target=target)
