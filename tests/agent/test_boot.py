"""The boot check finds out which types this agent can run, and says what mends the others."""

from typing import Any

import pytest

from agent.boot import MENDS_ICMP, MENDS_MEMORY, boot_check, working_types
from contract.checks import CheckSpec, CheckType, IcmpSpec, TcpSpec
from contract.result import FailureKind
from runners.kit.failures import CheckFailed
from runners.kit.harness import open_harness
from runners.kit.icmp.socket import PingerUnavailableError
from runners.kit.isolation.memory_promises import TooLittleMemoryError
from runners.kit.observation import Observation
from runners.kit.runner import RunContext, Runner
from runners.registry import RUNNABLE, runner_for
from tests.builders.scripts import runtimes_here


class Broken:
    """A runner that always ends the same way."""

    def __init__(self, spec: type[CheckSpec], problem: Exception) -> None:
        self.spec = spec
        self._problem = problem
        self.looks = 0

    async def observe(self, spec: CheckSpec, ctx: RunContext) -> Observation:
        self.looks += 1
        raise self._problem


def with_broken(broken: Broken) -> Any:
    def choose(spec: CheckSpec) -> Runner[Any]:
        return broken if isinstance(spec, broken.spec) else runner_for(spec)

    return choose


async def test_every_type_that_has_a_runner_works_here() -> None:
    async with open_harness(runtimes_here()) as harness:
        found = await boot_check(RUNNABLE, runner_for=runner_for, harness=harness)
    assert {one.check_type: one.problem for one in found} == dict.fromkeys(RUNNABLE)
    assert set(working_types(found)) == RUNNABLE


async def test_only_the_wanted_types_are_checked() -> None:
    found = await boot_check([CheckType.TCP], runner_for=runner_for)
    assert working_types(found) == (CheckType.TCP,)


async def test_an_agent_that_runs_nothing_passes() -> None:
    assert await boot_check([], runner_for=runner_for) == ()


async def test_without_the_privilege_icmp_is_not_claimed_and_the_mend_is_named() -> None:
    broken = Broken(IcmpSpec, PingerUnavailableError("This host does not let us send pings."))
    found = await boot_check([CheckType.ICMP, CheckType.DNS], runner_for=with_broken(broken))
    assert working_types(found) == (CheckType.DNS,)
    (problem,) = [one.problem for one in found if not one.works]
    assert problem == f"This host does not let us send pings. {MENDS_ICMP}"
    assert "--cap-add=NET_RAW" in MENDS_ICMP
    assert "net.ipv4.ping_group_range" in MENDS_ICMP


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (CheckFailed(FailureKind.CONNECT, "It is shut."), "It is shut."),
        (
            TooLittleMemoryError("There are 166 MB of memory free"),
            f"There are 166 MB of memory free. {MENDS_MEMORY}",
        ),
        (ZeroDivisionError("secret of ours"), "The check crashed: ZeroDivisionError."),
    ],
)
async def test_a_broken_type_is_reported_and_the_others_go_on(
    error: Exception, sentence: str
) -> None:
    found = await boot_check(
        [CheckType.TCP, CheckType.HEARTBEAT], runner_for=with_broken(Broken(TcpSpec, error))
    )
    assert [(one.check_type, one.problem) for one in found] == [
        (CheckType.HEARTBEAT, None),
        (CheckType.TCP, sentence),
    ]


async def test_a_type_that_works_the_second_time_is_claimed() -> None:
    class Late(Broken):
        async def observe(self, spec: CheckSpec, ctx: RunContext) -> Observation:
            if self.looks == 0:
                return await super().observe(spec, ctx)
            return await runner_for(spec).observe(spec, ctx)

    late = Late(TcpSpec, CheckFailed(FailureKind.TIMEOUT, "This host stood still."))
    found = await boot_check([CheckType.TCP], runner_for=with_broken(late))
    assert working_types(found) == (CheckType.TCP,)


async def test_a_type_without_a_boot_check_is_not_claimed() -> None:
    found = await boot_check([CheckType.AGENTIC], runner_for=runner_for)
    assert [one.problem for one in found] == ["This version has no boot check for AGENTIC."]


async def test_the_check_takes_its_time_into_account() -> None:
    (one,) = await boot_check([CheckType.TCP], runner_for=runner_for)
    assert one.took_ms > 0
