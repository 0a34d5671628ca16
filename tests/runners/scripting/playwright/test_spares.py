"""Spares: one loaded Playwright waits for the next run of its kind, and nobody can tell."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import msgspec
import pytest

from contract.checks import BrowserSpec, MultiStepSpec
from contract.job import Variable
from contract.result import CheckFailed, FailureKind, Outcome
from runners.browser import BrowserRunner
from runners.judging.judge import judge
from runners.multi_step import MultiStepRunner
from runners.runner import RunContext
from runners.scripting.playwright.place import RunFolders, make_folders
from runners.scripting.playwright.run import MULTI_STEP_MB
from runners.scripting.playwright.warm_pool import (
    WarmPool,
    WarmProcess,
    needs_fresh_process,
    start_warm_process,
)
from sandbox.program import Limits
from sandbox.workspace import Workspace
from tests.builders.agents import until
from tests.builders.scripts import a_scripted_context, runtimes_here
from tests.servers.measured_site import measured_site

PATIENT: dict[str, object] = {
    "timeout": 0,
    "expect": {"timeout": 50_000},
    "use": {"navigationTimeout": 0},
}
ENOUGH_S = (12.0, 30.0, 60.0)
"""Time limits to try in turn, where a script is to come to its end before time is up."""
SAYS_PID = "console.log(process.pid);"
a_loading_context = partial(a_scripted_context, loads_ahead=True)
both_runtimes = pytest.mark.parametrize("runtime_id", runtimes_here().installed)


@contextlib.asynccontextmanager
async def a_run_of(ctx: RunContext, **changes: Any) -> AsyncIterator[RunContext]:
    """A run of its own in the same harness."""
    workspace = Workspace()
    try:
        yield msgspec.structs.replace(ctx, workspace=workspace, **changes)
    finally:
        workspace.remove()


async def steps(ctx: RunContext, script: str = SAYS_PID, **changes: Any) -> Outcome:
    spec = MultiStepSpec(**{"script": script, "playwright_config": PATIENT, **changes})
    async with a_run_of(ctx) as own:
        return judge(spec, await MultiStepRunner().observe(spec, own))


async def a_use(ctx: RunContext) -> None:
    """As of a run of multiple steps that is over at once: a Playwright is loaded for the next."""
    runtime = ctx.network.scripts().runtimes.get(None)
    async with spares_of(ctx).lend(runtime, Limits(memory_mb=MULTI_STEP_MB)):
        pass


async def pid_of_a_run(ctx: RunContext, **changes: Any) -> int:
    outcome = await steps(ctx, **changes)
    return int(outcome.log[0].message)


def spares_of(ctx: RunContext) -> WarmPool:
    return ctx.network.scripts().warm_pool


async def a_spare(ctx: RunContext) -> WarmProcess:
    """The one that waits, once it does."""
    await until(lambda: len(spares_of(ctx).waiting) == 1)
    return spares_of(ctx).waiting[0]


def pid_of(spare: WarmProcess) -> int:
    return spare._child._pid


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def a_test(body: str, fixtures: str = "request") -> str:
    return (
        "import { test, expect } from '@playwright/test';\n"
        f"test('tea', async ({{ {fixtures} }}) => {{\n{body}\n}});\n"
    )


@both_runtimes
async def test_a_spare_runs_one_job_and_is_gone_with_it(runtime_id: str) -> None:
    async with a_loading_context() as ctx:
        assert spares_of(ctx).waiting == ()
        seen = [await pid_of_a_run(ctx, runtime_id=runtime_id)]
        for _ in range(2):
            spare = await a_spare(ctx)
            folder = spare.workspace.folder
            seen.append(await pid_of_a_run(ctx, runtime_id=runtime_id))
            assert seen[-1] == pid_of(spare)
            await until(lambda: not folder.exists())  # noqa: B023 -- waited for right here
    assert len(set(seen)) == 3
    assert not any(map(is_there, seen))


@both_runtimes
async def test_a_job_sees_of_its_spare_what_it_would_see_of_a_start_of_its_own(
    runtime_id: str,
) -> None:
    tells = """
        const rest = { argv: process.argv.slice(2), flags: process.execArgv };
        const text = JSON.stringify({ ...rest, ...process.env, cwd: process.cwd() });
        console.log(text.replaceAll(/run-[^/"]+/g, 'run'));
    """
    async with a_loading_context(variables=(Variable(key="TEA", value="black"),)) as ctx:
        plain = await steps(ctx, a_test(tells), runtime_id=runtime_id)
        await a_spare(ctx)
        spared = await steps(ctx, a_test(tells), runtime_id=runtime_id)
    assert '"TEA":"black"' in plain.log[0].message
    seen, before = (msgspec.json.decode(one.log[0].message) for one in (spared, plain))
    assert seen == before


async def test_a_spare_that_was_killed_costs_the_check_nothing() -> None:
    async with a_loading_context() as ctx:
        await a_use(ctx)
        killed = pid_of(await a_spare(ctx))
        os.kill(killed, signal.SIGKILL)
        outcome = await steps(ctx)
    assert outcome.failure is None
    assert int(outcome.log[0].message) != killed


async def test_without_playwrights_internals_a_job_starts_plainly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "runners.scripting.playwright.warm_pool._INTERNAL", ("playwright/lib/gone.js",)
    )
    async with a_loading_context() as ctx:
        await a_use(ctx)
        await until(lambda: not spares_of(ctx)._ended.is_set())
        assert await pid_of_a_run(ctx) > 0
        assert spares_of(ctx).waiting == ()


@pytest.mark.parametrize("name", ["TZ", "DEBUG", "PWDEBUG", "LC_ALL", "TERM", "SSL_CERT_FILE"])
def test_what_node_and_playwright_read_as_they_load_has_a_start_of_its_own(name: str) -> None:
    assert needs_fresh_process(["TEA", name])
    assert not needs_fresh_process(["TEA", "DEBUG_LEVEL", "REGION", "PASSWORD"])


async def test_a_run_that_starts_by_itself_leaves_the_one_that_waits_to_others() -> None:
    zone = "console.log(new Date(0).getHours(), Intl.DateTimeFormat().resolvedOptions().timeZone);"
    async with a_loading_context() as ctx:
        await a_use(ctx)
        spare = await a_spare(ctx)
        in_tokyo = msgspec.structs.replace(ctx, variables=(Variable(key="TZ", value="Asia/Tokyo"),))
        assert (await steps(in_tokyo, zone)).log[0].message == "9 Asia/Tokyo"
        assert spares_of(ctx).waiting == (spare,)


async def test_a_spare_that_does_not_take_its_job_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with a_loading_context() as ctx:
        await a_use(ctx)
        stopped = pid_of(await a_spare(ctx))
        os.kill(stopped, signal.SIGSTOP)
        monkeypatch.setattr("runners.scripting.playwright.warm_pool._TAKEN_S", 1.0)
        assert await pid_of_a_run(ctx) != stopped
        await until(lambda: not is_there(stopped))


async def test_a_spare_whose_start_is_cancelled_leaves_no_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folders: list[Path] = []
    may_go_on, is_made = threading.Event(), threading.Event()

    def slow(folder: Path) -> RunFolders:
        folders.append(folder)
        may_go_on.wait()
        place = make_folders(folder)
        is_made.set()
        return place

    monkeypatch.setattr("runners.scripting.playwright.warm_pool.make_folders", slow)
    async with a_loading_context() as ctx:
        harness = ctx.network.scripts()
        runtime = harness.runtimes.get(None)
        limits = Limits(memory_mb=1000)
        starting = asyncio.create_task(
            start_warm_process(harness.sandbox, runtime, limits, lambda _: {})
        )
        await until(lambda: bool(folders))
        starting.cancel()
        await asyncio.wait({starting}, timeout=0.05)
        may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await asyncio.to_thread(is_made.wait)
        assert not folders[0].exists()


async def test_while_a_run_is_under_way_or_memory_is_short_none_is_loaded() -> None:
    async with a_loading_context() as ctx:
        kept, runtime = spares_of(ctx), ctx.network.scripts().runtimes.get(None)
        await pid_of_a_run(ctx)
        await a_spare(ctx)
        (use,) = kept._used.values()
        kept._ended.clear()
        assert kept._may_load(use)
        async with kept.lend(runtime, use.limits):
            assert not kept._may_load(use)
        kept._ended.clear()
        kept._free_mb = lambda: use.limits.memory_mb + 1.0
        assert not kept._may_load(use)


async def test_kinds_that_nobody_uses_any_more_keep_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_loading_context() as ctx:
        await a_use(ctx)
        pid = pid_of(await a_spare(ctx))
        monkeypatch.setattr("runners.scripting.playwright.warm_pool.IDLE_S", 0.0)
        spares_of(ctx)._ended.set()
        await until(lambda: not is_there(pid))
        assert spares_of(ctx).waiting == ()


async def test_nothing_waits_when_the_harness_is_closed() -> None:
    async with a_loading_context() as ctx:
        await a_use(ctx)
        spare = await a_spare(ctx)
    assert not is_there(pid_of(spare))
    assert not spare.workspace.has_folder


EVERY_KIND = (
    ("a.spec.mjs", a_test(SAYS_PID)),
    ("a.spec.ts", a_test(f"const pid: number = process.pid; {SAYS_PID}")),
    ("a.spec.ts", "enum Tea { black }\n" + a_test(SAYS_PID)),
    ("a.ts", f"const pid: number = process.pid; {SAYS_PID}"),
    ("a.mjs", f"import 'node:fs'; {SAYS_PID}"),
)


async def test_scripts_of_every_kind_run_in_spares() -> None:
    async with a_loading_context() as ctx:
        await a_use(ctx)
        for path, script in EVERY_KIND:
            spare = await a_spare(ctx)
            outcome = await steps(ctx, script, script_path=path)
            assert outcome.failure is None, script
            assert int(outcome.log[0].message) == pid_of(spare)


async def test_time_and_place_of_a_failure_count_from_the_job_not_from_the_spare() -> None:
    async with a_loading_context() as ctx:
        await a_use(ctx)
        spare = await a_spare(ctx)
        spare._started_at -= 1000
        spare._child._started -= 1000
        outcome = await steps(ctx, a_test("console.log('here');\nexpect(1).toBe(2);"))
    assert outcome.failure is not None
    assert "script.js:4:11" in str(outcome.failure.detail)
    assert outcome.log[0].after_ms < 100_000
    assert outcome.timings.total is not None
    assert outcome.timings.total < 100_000


@both_runtimes
async def test_pages_are_measured_and_traces_hide_us_in_a_spare_as_well(runtime_id: str) -> None:
    async with measured_site() as url, a_loading_context(keeps_files=True) as ctx:
        spec = BrowserSpec(
            script=a_test(
                f"await page.goto('{url}/'); await expect(page).toHaveTitle('Done');", "page"
            ),
            playwright_config=PATIENT,
            runtime_id=runtime_id,
        )
        plain = await traced(spec, ctx)
        await a_spare(ctx)
        spared = await traced(spec, ctx)
        assert len(spares_of(ctx).waiting) == 0
    assert spared[0] == plain[0]
    assert spared[1] == plain[1]
    assert not [text for text in spared[2] if "picket/" in text or "waiting.cjs" in text]


async def traced(spec: BrowserSpec, ctx: RunContext) -> tuple[list[str], list[str], list[str]]:
    """What steps there were, what was measured of pages, and what stands in the trace."""
    async with a_run_of(ctx) as own:
        outcome = judge(spec, await BrowserRunner().observe(spec, own))
        assert outcome.failure is None
        (trace,) = own.workspace.folder.glob("*.zip")
        with ZipFile(trace) as file:
            names = [one for one in file.namelist() if one.endswith((".trace", ".stacks"))]
            texts = [file.read(one).decode() for one in names]
    evidence = outcome.evidence
    measured = msgspec.to_builtins(evidence.pages[0].metrics)
    told = [name for name, value in measured.items() if value is not None]
    return [step.title for step in evidence.steps], told, texts


@pytest.mark.parametrize(
    ("body", "kind", "word"),
    [
        ("await test.step('stares', () => new Promise(() => {}));", FailureKind.TIMEOUT, "stares"),
        (
            "const held = []; for (;;) held.push(Buffer.alloc(1e7, 1));",
            FailureKind.OUT_OF_MEMORY,
            "memory",
        ),
    ],
)
async def test_what_ends_a_run_is_named_the_same(body: str, kind: FailureKind, word: str) -> None:
    async with a_loading_context() as ctx:
        await a_use(ctx)
        for timeout_s in ENOUGH_S:
            await a_spare(ctx)
            limited = msgspec.structs.replace(ctx, timeout_s=timeout_s)
            failure = (await steps(limited, a_test(body))).failure
            assert failure is not None
            if failure.kind is kind and word in failure.message:
                break
    assert failure.kind is kind
    assert word in failure.message


async def test_variables_that_no_program_can_be_given_are_refused_here_as_well() -> None:
    """The one that waits gets them by its input; the browser that it starts could not."""
    large = Variable(key="LARGE", value="x" * 200_000)
    async with a_loading_context() as ctx:
        await a_use(ctx)
        await a_spare(ctx)
        with pytest.raises(CheckFailed, match="The variable LARGE has 200006 bytes"):
            await steps(msgspec.structs.replace(ctx, variables=(large,)))


async def test_one_that_waits_holds_no_memory_but_what_it_uses() -> None:
    async with a_loading_context() as ctx:
        await a_use(ctx)
        await a_spare(ctx)
        promises = ctx.network.scripts().sandbox._memory
        assert [promise.unused_mb for promise in promises._open] == [0]
        await pid_of_a_run(ctx)


async def test_memory_that_was_promised_to_others_is_not_there_for_one_to_wait_in() -> None:
    async with a_loading_context() as ctx:
        await a_use(ctx)
        await a_spare(ctx)
        kept, promises = spares_of(ctx), ctx.network.scripts().sandbox._memory
        (use,) = kept._used.values()
        kept._ended.clear()
        promises._available_mb = lambda: use.limits.memory_mb + 500.0
        assert kept._may_load(use)
        promise = await promises.reserve(400, wait_s=0)
        assert not kept._may_load(use)
        promise.release()
