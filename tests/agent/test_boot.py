"""The boot check finds out which types this agent can run, and says what to do about the others."""

from collections.abc import Iterable
from typing import Any

import pytest

from agent import self_test
from agent.self_test import API_WITH_SCRIPTS, Trial, TypeChecked, boot_check
from contract.checks import CheckSpec, CheckType, IcmpSpec, TcpSpec
from contract.result import CheckFailed, FailureKind
from runners.net.icmp.socket import ICMP_REMEDY, PingerUnavailableError
from runners.registry import RUNNABLE, runner_for
from runners.runner import Observation, RunContext, Runner
from runners.scripting.harness import open_harness
from runners.scripting.node.runtimes import find_runtimes
from sandbox.errors import HostError
from sandbox.memory import TooLittleMemoryError
from tests.builders.browser_programs import LACKS_A_LIBRARY, a_program
from tests.builders.rights import can_ping
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


def trials(*types: CheckType) -> set[Trial]:
    return {Trial(check_type=kind) for kind in types}


def working(found: Iterable[TypeChecked]) -> set[Trial]:
    return {one.trial for one in found if one.works}


def sentences(found: Iterable[TypeChecked]) -> list[str]:
    return [one.unavailable.sentence for one in found if one.unavailable is not None]


async def test_every_type_that_has_a_runner_works_here_scripts_of_api_checks_included() -> None:
    kinds = RUNNABLE if can_ping() else RUNNABLE - {CheckType.ICMP}
    every = {*trials(*kinds), API_WITH_SCRIPTS}
    async with open_harness(runtimes_here()) as harness:
        found = await boot_check(every, runner_for=runner_for, harness=harness)
    assert sentences(found) == []
    assert working(found) == every


@pytest.mark.parametrize("kind", [CheckType.BROWSER, CheckType.PLAYWRIGHT])
async def test_what_a_browser_printed_before_it_ended_is_the_cause_the_same_at_each_try(
    kind: CheckType,
) -> None:
    causes = set()
    with a_program("chromium", LACKS_A_LIBRARY) as program:
        async with open_harness(find_runtimes(None, program)) as harness:
            for _ in range(2):
                (one,) = await boot_check(trials(kind), runner_for=runner_for, harness=harness)
                assert one.unavailable is not None
                causes.add((one.unavailable.cause, one.unavailable.remedy))
    assert causes == {
        (
            (
                "the test check crashed: chromium: error while loading shared libraries: "
                "libnss3.so: cannot open shared object file; No such file"
            ),
            "see boot.check_crashed in the agent's log",
        )
    }


async def test_a_type_that_lacks_something_is_reported_without_a_try() -> None:
    problem = ("no prlimit", "install util-linux")
    wanted = trials(CheckType.BROWSER, CheckType.TCP)
    found = await boot_check(wanted, runner_for=runner_for, problem=problem)
    assert working(found) == trials(CheckType.TCP)
    assert sentences(found) == ["BROWSER checks cannot run here: no prlimit; install util-linux."]


async def test_only_the_wanted_types_are_checked() -> None:
    found = await boot_check(trials(CheckType.TCP), runner_for=runner_for)
    assert working(found) == trials(CheckType.TCP)


async def test_an_agent_that_runs_nothing_passes() -> None:
    assert await boot_check([], runner_for=runner_for) == ()


async def test_without_the_privilege_icmp_is_not_claimed_and_the_remedy_is_named() -> None:
    broken = Broken(
        IcmpSpec, PingerUnavailableError("This host does not let us send pings; open it.")
    )
    found = await boot_check(trials(CheckType.ICMP, CheckType.DNS), runner_for=with_broken(broken))
    assert working(found) == trials(CheckType.DNS)
    assert sentences(found) == [
        f"ICMP checks cannot run here: This host does not let us send pings; {ICMP_REMEDY}."
    ]
    assert "CAP_NET_RAW" in ICMP_REMEDY
    assert "net.ipv4.ping_group_range" in ICMP_REMEDY


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            CheckFailed(FailureKind.CONNECT, "It is shut."),
            "It is shut; fix the problem; the agent tries again automatically.",
        ),
        (
            TooLittleMemoryError("There are 166 MB of memory free"),
            "There are 166 MB of memory free; give the agent's container or machine more memory.",
        ),
        (
            OSError("No such program"),
            "the test check crashed: No such program; see boot.check_crashed in the agent's log.",
        ),
        (
            HostError("A script's user cannot enter /root", remedy="chmod o+x /root"),
            "the test check crashed: A script's user cannot enter /root; chmod o+x /root.",
        ),
        (
            PermissionError("cannot open libnss3.so; No such file\nCall log:\n  - launching"),
            (
                "the test check crashed: cannot open libnss3.so; No such file; "
                "see boot.check_crashed in the agent's log."
            ),
        ),
        (
            ZeroDivisionError(),
            "the test check crashed: ZeroDivisionError; see boot.check_crashed in the agent's log.",
        ),
    ],
)
async def test_a_broken_type_is_reported_and_the_others_go_on(
    error: Exception, sentence: str
) -> None:
    found = await boot_check(
        trials(CheckType.TCP, CheckType.HEARTBEAT),
        runner_for=with_broken(Broken(TcpSpec, error)),
    )
    assert working(found) == trials(CheckType.HEARTBEAT)
    assert sentences(found) == [f"TCP checks cannot run here: {sentence}"]


LATE = CheckFailed(FailureKind.TIMEOUT, "No answer came in time.")


@pytest.mark.parametrize("load", [1e6, 0.0])
async def test_a_check_that_is_late_on_a_busy_machine_is_told_from_a_fault(
    load: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_test.os, "getloadavg", lambda: (load, load, load))
    broken = with_broken(Broken(TcpSpec, LATE))
    (found,) = await boot_check(trials(CheckType.TCP), runner_for=broken)
    is_busy = load > 0
    assert found.is_busy is is_busy
    assert ("the machine is busy (load 1000000.0 on" in sentences([found])[0]) is is_busy


async def test_a_json_assertion_that_breaks_is_found_before_any_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaks(*_args: object, **_kwargs: object) -> None:
        raise AttributeError("module 'jsonpath' has no attribute 'Env'")

    monkeypatch.setattr("runners.judging.jsonpath.find_values", breaks)
    found = await boot_check(trials(CheckType.API), runner_for=runner_for)
    assert "has no attribute 'Env'" in sentences(found)[0]


async def test_a_type_that_works_the_second_time_is_claimed() -> None:
    class Late(Broken):
        async def observe(self, spec: CheckSpec, ctx: RunContext) -> Observation:
            if self.looks == 0:
                return await super().observe(spec, ctx)
            return await runner_for(spec).observe(spec, ctx)

    late = Late(TcpSpec, CheckFailed(FailureKind.TIMEOUT, "This host stood still."))
    found = await boot_check(trials(CheckType.TCP), runner_for=with_broken(late))
    assert working(found) == trials(CheckType.TCP)


async def test_a_type_without_a_boot_check_is_not_claimed() -> None:
    found = await boot_check(trials(CheckType.AGENTIC), runner_for=runner_for)
    assert working(found) == set()
    assert sentences(found)[0].startswith("AGENTIC checks cannot run here: this version has no")


async def test_the_check_takes_its_time_into_account() -> None:
    (one,) = await boot_check(trials(CheckType.TCP), runner_for=runner_for)
    assert one.took_ms > 0
