"""Suites that do not end: the result names what they hung in, and keeps what there is of them."""

from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile

import msgspec
import pytest

from contract.checks import PlaywrightSpec
from contract.result import FailureKind
from runners.playwright import PlaywrightRunner
from runners.runner import Observation
from tests.builders.patience import BLOCKS
from tests.builders.suites import BUNDLES, a_suite_context, a_written_suite

ENOUGH_S = (10, 30, 60)
"""Time limits to try in turn, where a suite is to come to some place before time is up."""
FOR_EVER = "await new Promise(() => setInterval(() => {}, 500));"
A_TEST = "require('@playwright/test').test('pays', async () => {});"
BUSY = "is there a loop without an end, or a call that blocks?"


def a_config(**more: str) -> str:
    further = "".join(f", {name}: {value}" for name, value in more.items())
    return f"module.exports = {{ workers: 1, retries: 0, timeout: 0{further} }};"


class Hung(msgspec.Struct, frozen=True):
    """What came of a suite that was stopped."""

    doing: str
    """The sentence behind the limit."""
    log: tuple[str, ...]
    traces: tuple[str, ...]
    """Names of archives that hold events."""


async def hung(folder: Path, files: Mapping[str, str], *, until: str) -> Hung:
    """Run it with a limit that lets it come so far as to hang there."""
    spec = a_written_suite(folder, files)
    for limit_s in ENOUGH_S:
        seen = await _seen(spec, limit_s)
        if until in seen.doing:
            break
    return seen


async def _seen(spec: PlaywrightSpec, limit_s: int) -> Hung:
    async with a_suite_context(BUNDLES, timeout_s=limit_s) as ctx:
        ran: Observation = await PlaywrightRunner().observe(spec, ctx)
        traces = (one.name for one in ran.artifacts if one.kind == "trace")
        told = tuple(name for name in traces if _has_events(ctx.workspace.folder / name))
    assert ran.failure is not None
    assert ran.failure.kind is FailureKind.TIMEOUT
    said = ran.failure.message.replace("\u203a", ">").replace("1 min", "60 s")
    stopped, limit, doing = said.partition(f" to keep its files within its limit of {limit_s} s: ")
    assert stopped.startswith("The suite was stopped after ")
    assert limit
    return Hung(doing, tuple(line.message for line in ran.log), told)


def _has_events(archive: Path) -> bool:
    with ZipFile(archive) as opened:
        events = (name for name in opened.namelist() if name.endswith(".trace"))
        return any(opened.read(name) for name in events)


async def test_a_hook_is_named_with_its_step_and_the_trace_is_kept(tmp_path: Path) -> None:
    script = (
        "const { test } = require('@playwright/test');\n"
        "test.beforeAll(async () => {\n"
        f"  await test.step('order', async () => {{ {FOR_EVER} }});\n"
        "});\n"
        "test('pays', async ({ page }) => {});\n"
    )
    seen = await hung(tmp_path, {"a.spec.js": script}, until="order")
    expected = "a.spec.js:5 > pays was in “order” (a.spec.js:3:3), in “beforeAll hook”."
    assert seen.doing.startswith(expected)
    assert len(seen.traces) == 1
    assert all(line.strip() for line in seen.log)


async def test_a_fixture_is_named(tmp_path: Path) -> None:
    script = (
        "const { test: base } = require('@playwright/test');\n"
        f"const test = base.extend({{ shop: async ({{}}, use) => {{ {FOR_EVER} }} }});\n"
        "test('pays', async ({ shop }) => {});\n"
    )
    seen = await hung(tmp_path, {"a.spec.js": script}, until="shop")
    assert "a.spec.js:3 > pays was in “" in seen.doing
    assert "shop" in seen.doing


async def test_a_busy_test_says_so_and_its_trace_so_far_is_kept(tmp_path: Path) -> None:
    script = (
        "const { test } = require('@playwright/test');\n"
        "test('pays', async ({ page }) => {\n"
        "  await page.goto('data:text/html,<h1>Tea</h1>');\n"
        f"  {BLOCKS}\n"
        "});\n"
    )
    seen = await hung(tmp_path, {"a.spec.js": script}, until="busy")
    assert "a.spec.js:2 > pays was busy after “" in seen.doing
    assert f"(a.spec.js:3:14): {BUSY}" in seen.doing
    assert seen.traces == ("unfinished-trace.zip",)


async def test_a_global_setup_is_named(tmp_path: Path) -> None:
    files = {
        "playwright.config.js": a_config(globalSetup="'./before.js'"),
        "before.js": f"module.exports = async () => {{ {FOR_EVER} }};",
        "a.spec.js": A_TEST,
    }
    seen = await hung(tmp_path, files, until="before.js")
    assert seen.doing.startswith("it was still in its global setup (before.js).")


async def test_a_web_server_that_does_not_come_is_named(tmp_path: Path) -> None:
    server = "{ command: 'sleep 600', url: 'http://127.0.0.1:1/', timeout: 0 }"
    files = {"playwright.config.js": a_config(webServer=server), "a.spec.js": A_TEST}
    seen = await hung(tmp_path, files, until="web server")
    assert seen.doing.startswith("it was still waiting for its web server (sleep at 127.0.0.1:1).")


async def test_a_global_teardown_is_named(tmp_path: Path) -> None:
    files = {
        "playwright.config.js": a_config(globalTeardown="'./after.js'"),
        "after.js": f"module.exports = async () => {{ {FOR_EVER} }};",
        "a.spec.js": A_TEST,
    }
    seen = await hung(tmp_path, files, until="after.js")
    assert seen.doing.startswith("it was still in its global teardown (after.js).")


async def test_a_test_whose_own_time_was_up_names_the_step_that_it_was_in(tmp_path: Path) -> None:
    script = (
        "const { test } = require('@playwright/test');\n"
        "test('pays', async () => {\n"
        f"  await test.step('order', async () => {{ {FOR_EVER} }});\n"
        "});\n"
    )
    for limit_ms in (500, 3000, 20_000):
        config = f"module.exports = {{ workers: 1, retries: 1, timeout: {limit_ms} }};"
        folder = tmp_path / str(limit_ms)
        folder.mkdir()
        spec = a_written_suite(folder, {"a.spec.js": script, "playwright.config.js": config})
        async with a_suite_context(BUNDLES) as ctx:
            ran = await PlaywrightRunner().observe(spec, ctx)
        assert ran.failure is not None
        said = ran.failure.message.replace("\u203a", ">")
        if "order" in said:
            break
    assert said == (
        f"a.spec.js:2 > pays: Test timeout of {limit_ms}ms exceeded in “order” (a.spec.js:3:3)."
    )


async def test_time_that_runs_out_as_packages_are_installed_is_told_as_that(
    tmp_path: Path,
) -> None:
    spec = a_written_suite(tmp_path, {"a.spec.js": A_TEST})
    slow = msgspec.structs.replace(spec, install_command="sleep 100")
    for limit_s in (4, 20, 50):
        async with a_suite_context(BUNDLES, timeout_s=limit_s) as ctx:
            ran = await PlaywrightRunner().observe(slow, ctx)
        assert ran.failure is not None
        assert ran.failure.kind is FailureKind.TIMEOUT
        if "sleep 100" in ran.failure.message:
            break
    assert ran.failure.message == (
        "Installing the packages with `sleep 100` did not end within the limit of the whole run, "
        f"{limit_s} s."
    )


@pytest.mark.parametrize("wrapper", ["npm test", "npx playwright test; echo over"])
async def test_a_suite_behind_another_command_is_named_as_well(
    tmp_path: Path, wrapper: str
) -> None:
    script = f"require('@playwright/test').test('pays', async () => {{ {FOR_EVER} }});"
    package = '{"name": "suite", "private": true, "scripts": {"test": "playwright test"}}'
    spec = a_written_suite(tmp_path, {"a.spec.js": script, "package.json": package})
    for limit_s in ENOUGH_S:
        seen = await _seen(msgspec.structs.replace(spec, test_command=wrapper), limit_s)
        if "pays" in seen.doing:
            break
    assert "a.spec.js:1 > pays was in no step" in seen.doing
