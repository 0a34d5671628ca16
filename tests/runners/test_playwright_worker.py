"""Playwright's worker in the test runner's own process: a script cannot tell, nor can we."""

from typing import Any

import pytest

from contract.checks import MultiStepSpec
from contract.result import FailureKind, Outcome
from runners.judging.judge import judge
from runners.multi_step import MultiStepRunner
from tests.builders.patience import BLOCKS
from tests.builders.scripts import a_scripted_context, runtimes_here

ENOUGH_S = (12.0, 30.0, 60.0)
"""Time limits to try in turn, where a script is to come to some step before time is up."""
NO_LIMIT: dict[str, object] = {"timeout": 0}
both_runtimes = pytest.mark.parametrize("runtime_id", runtimes_here().installed)


async def looked(script: str, *, timeout_s: float = 60.0, **changes: Any) -> Outcome:
    spec = MultiStepSpec(**{"script": script, "playwright_config": NO_LIMIT, **changes})
    async with a_scripted_context(timeout_s=timeout_s) as ctx:
        return judge(spec, await MultiStepRunner().observe(spec, ctx))


def a_file(*bodies: str, head: str = "") -> str:
    tests = [f"test('test {n}', async () => {{\n{body}\n}});\n" for n, body in enumerate(bodies)]
    return "\n".join(["import { test, expect } from '@playwright/test';", head, *tests])


def log_of(outcome: Outcome) -> list[str]:
    return [line.message for line in outcome.log]


@both_runtimes
async def test_a_file_is_loaded_once_and_its_worker_is_the_process_itself(runtime_id: str) -> None:
    head = "console.log(`loaded by ${process.pid}`);"
    script = a_file("console.log(`run by ${process.pid}, ${process.ppid}`);", head=head)
    outcome = await looked(script, runtime_id=runtime_id)
    assert outcome.failure is None
    loaded, run = log_of(outcome)
    assert run.startswith(loaded.replace("loaded", "run"))


@both_runtimes
@pytest.mark.parametrize(
    "end",
    [
        "process.exit(0);",
        "process.abort();",
        "process.kill(process.pid, 'SIGKILL');",
        "process.reallyExit(0);",
        "require('child_process').execSync(`kill -9 ${process.pid}`);",
    ],
)
async def test_a_test_that_ends_its_process_fails_and_the_others_still_run(
    end: str, runtime_id: str
) -> None:
    script = a_file(f"{end}\nconsole.log('never');", "console.log('after it');")
    outcome = await looked(script, runtime_id=runtime_id)
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.SCRIPT
    assert "exited unexpectedly" in outcome.failure.message
    assert "after it" in log_of(outcome)
    assert "never" not in log_of(outcome)


@pytest.mark.parametrize(
    "script",
    [
        "console.log('about to'); process.reallyExit(3);",
        "process.kill(process.pid, 'SIGKILL');",
        "process.kill(process.pid, 'SIGSEGV');",
        # `process.kill` gives it a worker of its own, whose parent is the runner.
        a_file("process.kill(process.ppid, 'SIGKILL'); await new Promise(() => {});"),
    ],
)
async def test_a_script_that_ends_its_run_untold_is_to_blame_for_it(script: str) -> None:
    outcome = await looked(script)
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.SCRIPT
    told = ("The script's process was ended (", "The script ended its own process")
    assert outcome.failure.message.startswith(told)


@both_runtimes
async def test_after_a_failure_the_next_test_finds_nothing_of_it(runtime_id: str) -> None:
    fails = "process.env.LEFT = globalThis.left = 'left'; expect(1).toBe(2);"
    looks = "console.log(`left: ${process.env.LEFT} ${globalThis.left}`);"
    outcome = await looked(a_file(fails, looks), runtime_id=runtime_id)
    assert outcome.failure is not None
    assert "toBe" in outcome.failure.message
    assert "left: undefined undefined" in log_of(outcome)


@both_runtimes
@pytest.mark.parametrize("how", ["throw", "Promise.reject"])
async def test_an_error_that_nobody_catches_fails_the_test(how: str, runtime_id: str) -> None:
    error = "new Error('nobody caught it')"
    thrown = f"{how} {error};" if how == "throw" else f"void {how}({error});"
    body = f"setTimeout(() => {{ {thrown} }}, 0);\nawait new Promise(() => {{}});"
    outcome = await looked(a_file(body), runtime_id=runtime_id)
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.SCRIPT
    assert "nobody caught it" in outcome.failure.message


@both_runtimes
async def test_a_step_that_blocks_all_behind_it_is_named(runtime_id: str) -> None:
    body = f"await test.step('counts the stars', async () => {{ {BLOCKS} }});"
    for timeout_s in ENOUGH_S:
        outcome = await looked(a_file(body), timeout_s=timeout_s, runtime_id=runtime_id)
        assert outcome.failure is not None
        if "counts the stars" in outcome.failure.message:
            break
    assert outcome.failure.kind is FailureKind.TIMEOUT
    assert "counts the stars" in outcome.failure.message


@both_runtimes
async def test_what_outlives_a_worker_is_not_met_by_the_next_one(runtime_id: str) -> None:
    """An address is still taken, where the first worker is no process of its own."""
    head = """
        test.describe.configure({ retries: 1 });
        const server = require('node:http').createServer((_request, answer) => answer.end());
        test.beforeAll(() => new Promise((done, fail) => {
          server.on('error', fail).listen(String.fromCharCode(0) + __dirname, done);
        }));
    """
    script = a_file("expect(test.info().retry).toBe(1);", head=head)
    outcome = await looked(script, runtime_id=runtime_id)
    assert outcome.failure is None


async def test_what_a_file_reads_of_its_worker_as_it_is_loaded_is_there() -> None:
    head = "const first = process.env.TEST_PARALLEL_INDEX;"
    assert (await looked(a_file("expect(first).toBe('0');", head=head))).failure is None


@both_runtimes
@pytest.mark.parametrize("first", ["", "import { test } from '@playwright/test';"])
async def test_every_file_is_strict(first: str, runtime_id: str) -> None:
    first = first or "const { test } = require('@playwright/test');"
    script = f"{first}\ntest('tea', () => {{ undeclared = 5; }});\n"
    outcome = await looked(script, runtime_id=runtime_id)
    assert outcome.failure is not None
    assert "undeclared is not defined" in outcome.failure.message


async def test_an_import_below_its_use_is_there_all_the_same() -> None:
    script = "test('tea', () => {});\nimport { test } from '@playwright/test';\n"
    assert (await looked(script)).failure is None


@pytest.mark.parametrize(
    "change",
    [
        "JSON.stringify = () => '';",
        "JSON.parse = () => { throw new Error('no'); };",
        "require('node:fs').writeSync = () => { throw new Error('no'); };",
        "performance.now = () => NaN;",
    ],
)
async def test_what_a_script_puts_in_place_of_globals_is_its_own_alone(change: str) -> None:
    body = f"{change}\nawait test.step('a step', async () => {{}});\nexpect(1).toBe(2);"
    outcome = await looked(a_file(body))
    assert outcome.failure is not None
    assert "toBe" in outcome.failure.message


async def test_what_a_script_does_to_the_clock_leaves_the_run_its_own() -> None:
    body = """
        Date.now = () => 0;
        globalThis.setImmediate = globalThis.setTimeout = () => {};
        await test.step('a step', async () => {});
    """
    outcome = await looked(a_file(body))
    assert outcome.failure is None


@both_runtimes
@pytest.mark.parametrize("path", [None, "check.spec.ts"])
async def test_type_arguments_are_no_comparisons(path: str | None, runtime_id: str) -> None:
    step = "await base.step<Object>('adds', async () => { base.expect(1).toBe(2); });"
    script = (
        "import { test as base } from '@playwright/test';\n"
        "const test = base.extend<{ tea: Tea }>({ tea: ({}, use) => use('green') });\n"
        f"test('a', async ({{ tea }}) => {{ {step} }});\n"
    )
    outcome = await looked(script, script_path=path, runtime_id=runtime_id)
    assert outcome.failure is not None
    assert "toBe" in outcome.failure.message


@both_runtimes
@pytest.mark.parametrize(
    ("path", "head"),
    [
        ("check.spec.mjs", "const one = 1;"),
        ("check.spec.ts", "const one: number = 1;"),
        ("check.spec.ts", "enum Number_ { one = 1 }\nconst one = Number_.one;"),
        ("check.spec.js", "import { sep } from 'node:path';\nconst one = sep.length;"),
    ],
)
async def test_scripts_of_every_kind_run_there(path: str, head: str, runtime_id: str) -> None:
    body = "console.log(`one is ${one}`);\nexpect(one).toBe(2);"
    script = a_file(body, head=head)
    outcome = await looked(script, script_path=path, runtime_id=runtime_id)
    assert outcome.failure is not None
    assert log_of(outcome) == ["one is 1"]
    line = script.split("\n").index("expect(one).toBe(2);") + 1
    assert f"{path}:{line}:13" in str(outcome.failure.detail)
