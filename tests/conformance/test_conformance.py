"""What every check type must have, and what every runner must keep to."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from contract import wire
from contract.checks import (
    AGENT_TYPES,
    SPEC_TYPES,
    BrowserSpec,
    CheckSpec,
    CheckType,
    DnsRequest,
    IcmpRequest,
    MultiStepSpec,
    check_type,
)
from contract.job import Job
from contract.requests import IpFamily
from contract.result import FailureKind, Outcome, Status
from runners.execute import execute
from runners.net.egress.rules import EgressRules
from runners.registry import RUNNABLE, RUNNERS, NoRunnerError, runner_for
from runners.runner import RunContext
from runners.scripting.playwright.verdict import BrowserDidNotStartError
from runners.tools import Tools
from sandbox.workspace import Workspace
from tests.builders.agents import until
from tests.builders.context import PingTable, a_context
from tests.builders.patience import LONG_S, descriptors
from tests.builders.scripts import a_scripted_context
from tests.builders.specs import (
    a_dns_spec,
    a_heartbeat_spec,
    a_job,
    a_spec_of,
    a_tcp_spec,
    a_url_spec,
    an_api_spec,
    an_icmp_spec,
)
from tests.builders.suites import BUNDLES, a_fetching_suite, a_suite_context
from tests.servers.island import SWALLOWED, UNREACHABLE, island
from tests.servers.tcp import refusing_port, swallowing_port

GOLDEN = Path(__file__).parents[1] / "contract" / "golden"

WITHOUT_RUNNER: Final = {
    CheckType.AGENTIC: "needs a browser and a model, which come with a later issue",
}
"""Types that no agent claims yet. A runner for one of them takes its line out of here."""

RUN_TIME_S: Final = 0.3
ENOUGH_S: Final = (RUN_TIME_S, 3.0, 20.0, LONG_S)
"""Time limits to try in turn, until a browser has started before its time is up."""
MUCH_LATER_S: Final = LONG_S
"""A runner that ends only now did not keep its time limit, however busy the machine is."""

DATAGRAMS, STREAMS = socket.SOCK_DGRAM, socket.SOCK_STREAM
Somewhere = Callable[[ExitStack], CheckSpec]


def dns_at(port: int) -> CheckSpec:
    return a_dns_spec(request=DnsRequest(query="x.test", name_server="127.0.0.1", port=port))


def ping_swallowed(stack: ExitStack) -> CheckSpec:
    stack.enter_context(island())
    return an_icmp_spec(request=IcmpRequest(hostname=SWALLOWED[IpFamily.IPV4], ping_count=5))


def ping_unreachable(stack: ExitStack) -> CheckSpec:
    stack.enter_context(island())
    return an_icmp_spec(UNREACHABLE)


def opening(port: int) -> CheckSpec:
    return BrowserSpec(
        script=f"""
            const {{ chromium }} = require('playwright');
            const page = await (await chromium.launch()).newPage();
            await page.goto('http://127.0.0.1:{port}/', {{ timeout: 0 }});
        """
    )


def asking(port: int) -> CheckSpec:
    return MultiStepSpec(
        script=f"""
            const {{ request }} = require('playwright');
            const asked = await request.newContext({{ timeout: 0 }});
            await asked.get('http://127.0.0.1:{port}/');
        """
    )


def suite_at(stack: ExitStack, port: int) -> CheckSpec:
    return a_fetching_suite(stack, f"http://127.0.0.1:{port}/")


BLACK_HOLES: Final[dict[CheckType, Somewhere]] = {
    CheckType.URL: lambda stack: a_url_spec(
        f"http://127.0.0.1:{stack.enter_context(swallowing_port())}/"
    ),
    CheckType.API: lambda stack: an_api_spec(
        f"http://127.0.0.1:{stack.enter_context(swallowing_port())}/"
    ),
    CheckType.TCP: lambda stack: a_tcp_spec(port=stack.enter_context(swallowing_port())),
    CheckType.DNS: lambda stack: dns_at(stack.enter_context(swallowing_port(DATAGRAMS))),
    CheckType.ICMP: ping_swallowed,
    CheckType.HEARTBEAT: lambda _: a_heartbeat_spec(silent_for_s=1e6),
    CheckType.BROWSER: lambda stack: opening(stack.enter_context(swallowing_port())),
    CheckType.MULTI_STEP: lambda stack: asking(stack.enter_context(swallowing_port())),
    CheckType.PLAYWRIGHT: lambda stack: suite_at(stack, stack.enter_context(swallowing_port())),
}
"""Targets that take everything and never answer; a job that never pings."""

REFUSALS: Final[dict[CheckType, Somewhere]] = {
    CheckType.URL: lambda stack: a_url_spec(
        f"http://127.0.0.1:{stack.enter_context(refusing_port())}/"
    ),
    CheckType.API: lambda stack: an_api_spec(
        f"http://127.0.0.1:{stack.enter_context(refusing_port())}/"
    ),
    CheckType.TCP: lambda stack: a_tcp_spec(port=stack.enter_context(refusing_port())),
    CheckType.DNS: lambda stack: dns_at(stack.enter_context(refusing_port(DATAGRAMS))),
    CheckType.ICMP: ping_unreachable,
    CheckType.HEARTBEAT: lambda _: a_heartbeat_spec(silent_for_s=1e6),
    CheckType.BROWSER: lambda stack: opening(stack.enter_context(refusing_port())),
    CheckType.MULTI_STEP: lambda stack: asking(stack.enter_context(refusing_port())),
    CheckType.PLAYWRIGHT: lambda stack: suite_at(stack, stack.enter_context(refusing_port())),
}
"""Targets that say no; for pings an unreachable host, for heartbeats a silent job."""

BLAMED: Final = {
    CheckType.ICMP: FailureKind.PACKET_LOSS,
    CheckType.HEARTBEAT: FailureKind.OVERDUE,
}
"""What silence and a refusal become where they are no time-out and no refused connection."""

BLAMED_FOR_REFUSAL: Final = {
    **BLAMED,
    CheckType.BROWSER: FailureKind.SCRIPT,
    CheckType.MULTI_STEP: FailureKind.SCRIPT,
    CheckType.PLAYWRIGHT: FailureKind.SCRIPT,
}
"""A script is told of a refusal, and throws."""


@contextmanager
def target(places: dict[CheckType, Somewhere], kind: CheckType) -> Iterator[CheckSpec]:
    with ExitStack() as stack:
        yield places[kind](stack)


async def run(spec: CheckSpec, ctx: RunContext) -> Outcome:
    own = msgspec.structs.replace(ctx, workspace=Workspace())
    try:
        async with asyncio.timeout(MUCH_LATER_S):
            return await execute(a_job(spec, deadline_s=LONG_S), runner_for(spec), own)
    finally:
        own.workspace.remove()


async def run_whatever_comes(spec: CheckSpec, ctx: RunContext) -> Outcome | None:
    """None: a browser took longer to start than it has time."""
    try:
        return await run(spec, ctx)
    except BrowserDidNotStartError:
        return None


async def run_once_started(kind: CheckType, spec: CheckSpec) -> Outcome:
    for limit_s in ENOUGH_S:
        with suppress(BrowserDidNotStartError):
            async with a_context_of(kind, timeout_s=run_time_s(kind, limit_s)) as ctx:
                return await run(spec, ctx)
    raise AssertionError("no browser started")


def a_context_of(kind: CheckType, **changes: Any) -> AbstractAsyncContextManager[RunContext]:
    """What a run of this type may use."""
    if kind is CheckType.PLAYWRIGHT:
        return a_suite_context(BUNDLES, **changes)
    is_scripted = kind in (CheckType.BROWSER, CheckType.MULTI_STEP)
    return (a_scripted_context if is_scripted else a_context)(**changes)


def run_time_s(kind: CheckType, limit_s: float = RUN_TIME_S) -> float:
    """Pings that nobody answers end by themselves, shortly before time is up; see `hasty_pings`."""
    return LONG_S if kind is CheckType.ICMP else limit_s


async def until_only(files: set[str], tasks: set[asyncio.Task[Any]]) -> None:
    """Wait until nothing else is open or under way."""
    await until(lambda: asyncio.all_tasks() <= tasks and descriptors() <= files)


def test_every_type_has_a_runner_or_a_reason() -> None:
    assert frozenset(CheckType) == RUNNABLE | WITHOUT_RUNNER.keys()
    assert not RUNNABLE & WITHOUT_RUNNER.keys()


def test_no_two_runners_take_the_same_spec() -> None:
    assert len({runner.spec for runner in RUNNERS}) == len(RUNNERS)


@pytest.mark.parametrize("kind", CheckType)
def test_every_type_has_a_spec_and_a_golden_job(kind: CheckType) -> None:
    golden = wire.decode((GOLDEN / f"job_{kind.value}.json").read_bytes(), Job)
    assert type(golden.spec) is SPEC_TYPES[kind]
    assert check_type(golden.spec) is kind


def test_the_types_that_agents_run_are_those_with_a_runner() -> None:
    assert set(AGENT_TYPES) == RUNNABLE


@pytest.mark.parametrize("kind", sorted(RUNNABLE))
def test_a_runner_is_found_by_its_spec(kind: CheckType) -> None:
    assert runner_for(a_spec_of(kind)).spec is SPEC_TYPES[kind]


@pytest.mark.parametrize("kind", sorted(WITHOUT_RUNNER))
def test_a_spec_without_a_runner_is_refused_by_name(kind: CheckType) -> None:
    with pytest.raises(NoRunnerError, match=SPEC_TYPES[kind].__name__):
        runner_for(a_spec_of(kind))


@pytest.mark.usefixtures("hasty_pings")
@pytest.mark.parametrize("kind", sorted(RUNNABLE))
async def test_a_target_that_never_answers_does_not_hold_a_runner(kind: CheckType) -> None:
    with target(BLACK_HOLES, kind) as spec:
        outcome = await run_once_started(kind, spec)
    assert outcome.failure is not None
    assert outcome.failure.kind is BLAMED.get(kind, FailureKind.TIMEOUT)
    assert outcome.failure.detail.get("code") != "DEADLINE", "the runner itself has to end"


@pytest.mark.parametrize("kind", sorted(RUNNABLE))
async def test_a_refusal_is_the_targets_fault(kind: CheckType) -> None:
    with target(REFUSALS, kind) as spec:
        async with a_context_of(kind) as ctx:
            outcome = await run(spec, ctx)
    assert outcome.status is Status.FAILED
    assert outcome.failure is not None
    assert outcome.failure.kind is BLAMED_FOR_REFUSAL.get(kind, FailureKind.CONNECT)
    assert outcome.evidence is not None


@pytest.mark.usefixtures("hasty_pings")
@pytest.mark.parametrize("places", [BLACK_HOLES, REFUSALS], ids=["black hole", "refusal"])
@pytest.mark.parametrize("kind", sorted(RUNNABLE))
async def test_a_run_leaves_no_task_and_no_descriptor_behind(
    kind: CheckType, places: dict[CheckType, Somewhere]
) -> None:
    with target(places, kind) as spec:
        for limit_s in ENOUGH_S:
            async with a_context_of(kind, timeout_s=run_time_s(kind, limit_s)) as ctx:
                await run_whatever_comes(spec, ctx)  # opens what is opened once per process
                await asyncio.sleep(0)
                files, tasks = descriptors(), asyncio.all_tasks()
                ended = await asyncio.gather(*(run_whatever_comes(spec, ctx) for _ in range(3)))
                await until_only(files, tasks)
            if any(ended):
                return
    raise AssertionError("no browser started")


@pytest.mark.usefixtures("hasty_pings")
@pytest.mark.parametrize("kind", sorted(RUNNABLE))
async def test_a_cancelled_run_leaves_nothing_behind(kind: CheckType) -> None:
    with target(BLACK_HOLES, kind) as spec:
        async with a_context_of(kind, timeout_s=run_time_s(kind)) as ctx:
            await run_whatever_comes(spec, ctx)
            await asyncio.sleep(0)
            files, tasks = descriptors(), asyncio.all_tasks()
            cancelled = asyncio.create_task(run_whatever_comes(spec, ctx))
            await asyncio.sleep(0.05)
            cancelled.cancel()
            await asyncio.wait([cancelled])
            await until_only(files, tasks)


class OurBugError(Exception):
    """A mistake in our own tools."""


class Broken:
    """A tool that is defect, whatever one wants of it."""

    def __getattr__(self, name: str) -> Any:
        raise OurBugError(name)


@pytest.mark.parametrize("kind", sorted(RUNNABLE))
async def test_our_own_bug_is_never_the_targets_fault(kind: CheckType) -> None:
    broken: Any = Broken()
    network = Tools(
        http=broken,
        pinger=broken,
        resolver=broken,
        egress=EgressRules(),
        tls=broken,
        harness=broken,
    )
    ctx = RunContext(network=network, pings=broken, timeout_s=RUN_TIME_S)
    spec = dns_at(53) if kind is CheckType.DNS else a_spec_of(kind)
    with pytest.raises(OurBugError):
        await run(spec, ctx)


async def test_a_ping_that_this_agent_heard_counts() -> None:
    spec = a_heartbeat_spec(silent_for_s=1e6)
    async with a_context() as ctx:
        heard = RunContext(
            network=ctx.network, pings=PingTable({spec.ping_token: 1.0}), timeout_s=RUN_TIME_S
        )
        assert (await run(spec, heard)).status is Status.PASSED
