"""A suite that fails, hangs or cannot run says which test, where and why, and whose fault it is."""

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contract.checks import PlaywrightSpec
from contract.job import Variable
from contract.result import FailureKind
from runners.playwright import BrowserDidNotStartError, PlaywrightRunner
from runners.runner import Observation
from runners.scripting.node.runtimes import MissingRuntimeError
from runners.scripting.suites import run as suite_run
from runners.scripting.suites.bundle_cache import BundleError
from sandbox.workspace import PREFIX
from tests.builders.browser_programs import hanging_browser
from tests.builders.patience import LONG_S
from tests.builders.suites import a_bundle, a_suite_context, seen
from tests.builders.told_suites import changed, said, told, words


async def test_a_configuration_that_playwright_refuses_is_named(tmp_path: Path) -> None:
    ran = await seen(tmp_path, a_bundle(tmp_path, "function_config"))
    assert "playwright.config.js: Configuration file must export a single object" in words(ran)
    assert told(ran).playwright_version is None


@pytest.mark.parametrize(
    ("file", "sentence", "more"),
    [
        (
            "expects",
            "expects.spec.ts:4 > greets: Error: expect(locator).toHaveText(expected) failed",
            (
                "(front.ts:4:35).",
                "Locator:  locator('p')",
                'Expected: "Good tea"',
                'Received: "Bad tea"',
            ),
        ),
        ("syntax", 'syntax.spec.ts:4: SyntaxError: Unexpected token, expected ",".', ()),
        ("imports", "imports.spec.js:2: Error: Cannot find module 'no-such-package'.", ()),
    ],
)
async def test_a_failure_shows_what_was_seen_and_the_line_by_the_suites_own_files(
    tmp_path: Path, file: str, sentence: str, more: tuple[str, ...]
) -> None:
    spec = changed(a_bundle(tmp_path, "mistakes"), test_command=f"npx playwright test {file}.spec")
    ran = await seen(tmp_path, spec)
    assert words(ran).startswith(f"tests/{sentence}")
    assert [one for one in more if one not in words(ran)] == []
    only_its_own(ran)


async def test_a_test_that_waits_too_long_shows_for_what_and_at_which_line(tmp_path: Path) -> None:
    spec = changed(a_bundle(tmp_path, "mistakes"), test_command="npx playwright test waits.spec")
    for limit_ms in (3000, 12000, 40000):  # the page takes its part to open
        limit = Variable(key="LIMIT_MS", value=str(limit_ms))
        ran = await seen(tmp_path, spec, variables=(limit,))
        if "waiting for locator" in words(ran):
            break
    reached = f"page.click: Test timeout of {limit_ms}ms exceeded."
    assert words(ran).startswith(f"tests/waits.spec.ts:3 > waits: Error: {reached}")
    assert "(tests/waits.spec.ts:5:14)." in words(ran)
    assert "  - waiting for locator('#buy')" in words(ran)
    only_its_own(ran)


def only_its_own(ran: Observation) -> None:
    """Nothing of the place where the suite ran, or of the packages, is shown."""
    everything = "\n".join([*told(ran).errors, *said(ran), words(ran)])
    assert PREFIX not in everything
    assert "/node_modules/" not in everything
    assert "\x1b" not in everything, "colours of a terminal"


async def test_a_configuration_with_a_mistake_is_named_by_its_file(tmp_path: Path) -> None:
    broken = "echo 'module.exports = { workers: 1, ;' > playwright.config.js; npm ci"
    spec = changed(a_bundle(tmp_path, "mistakes"), install_command=broken)
    sentence = "without running a test: SyntaxError: playwright.config.js: Unexpected token (1:31)."
    assert words(await seen(tmp_path, spec)).endswith(sentence)


async def test_a_time_out_names_the_test_that_hung(tmp_path: Path) -> None:
    spec = a_bundle(tmp_path, "hangs")
    for timeout_s in (8, 20, LONG_S):
        ran = await seen(tmp_path, spec, timeout_s=timeout_s)
        assert ran.failure is not None
        assert ran.failure.kind is FailureKind.TIMEOUT
        if "waits for ever was" in words(ran):
            break
    assert f"its limit of {timeout_s:g} s: stuck.spec.js:5 > waits for ever was " in words(ran)
    assert "passes" in [test.title for test in told(ran).tests]


async def test_the_suites_own_global_timeout_is_kept(tmp_path: Path) -> None:
    ran = await seen(tmp_path, a_bundle(tmp_path, "too_long"))
    assert ran.failure is not None
    assert ran.failure.kind is FailureKind.TIMEOUT
    told = "The suite reached the globalTimeout of its own configuration"
    assert words(ran).startswith(told)
    assert words(ran).endswith("; 2 of 2 tests did not run.")


async def test_too_much_memory_is_named_with_limit_and_peak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = msgspec.structs.replace(suite_run.LIMITS, memory_mb=450)
    monkeypatch.setattr("runners.scripting.suites.run.LIMITS", limits)
    monkeypatch.setattr("runners.playwright.LIMITS", limits)
    ran = await seen(tmp_path, a_bundle(tmp_path, "greedy"))
    assert ran.failure is not None
    assert ran.failure.kind is FailureKind.OUT_OF_MEMORY
    assert "eats.spec.js:3 > eats" in words(ran)
    assert "its limit is 450 MB, its peak was" in words(ran)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"working_dir": "nowhere"}, "The working directory 'nowhere' is not in the code bundle."),
        ({"test_command": "bunx --bun playwright test"}, "asks for Bun's own runtime by --bun"),
        ({"engine_version": "99"}, "Node 99 is not available at this location; it has"),
        ({"test_command": " "}, "The test command is empty; use for example"),
        ({"test_command": "mocha"}, "ended with exit code 127 (a program was not found)"),
        ({"test_command": "true"}, "ended with exit code 0 without running a test."),
        (
            {"install_command": "npm ci --strange && false"},
            "Installing the packages with `npm ci --strange && false` ended with exit code 1",
        ),
        (
            {"install_command": "echo npm error code ENOSPC >&2; exit 3"},
            "ended with exit code 3: npm error code ENOSPC.",
        ),
        (
            {"install_command": "rm -rf tests; true", "working_dir": "tests"},
            "Installing the packages removed a folder of the run, or put a link in its place.",
        ),
    ],
)
async def test_a_check_that_cannot_work_says_why_in_one_sentence(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    ran = await seen(tmp_path, changed(a_bundle(tmp_path, "cjs"), **changes))
    assert ran.failure is not None
    assert ran.failure.kind is FailureKind.SCRIPT
    assert sentence in words(ran)


async def test_a_machine_without_a_browser_is_our_fault(tmp_path: Path) -> None:
    spec = a_bundle(tmp_path, "cjs")
    async with a_suite_context(tmp_path) as ctx:
        harness = ctx.network.scripts()
        runtimes = dataclasses.replace(harness.runtimes, browser=None)
        bare = dataclasses.replace(harness, runtimes=runtimes)
        object.__setattr__(ctx.network, "harness", bare)
        with pytest.raises(MissingRuntimeError):
            await PlaywrightRunner().observe(spec, ctx)


async def test_a_browser_that_does_not_start_is_our_fault(tmp_path: Path) -> None:
    spec = a_bundle(tmp_path, "cjs")
    async with a_suite_context(tmp_path) as ctx:
        harness = ctx.network.scripts()
        runtimes = dataclasses.replace(harness.runtimes, browser=Path("/bin/false"))
        broken = dataclasses.replace(harness, runtimes=runtimes)
        object.__setattr__(ctx.network, "harness", broken)
        with pytest.raises(BrowserDidNotStartError):
            await PlaywrightRunner().observe(spec, ctx)


async def test_a_browser_that_hangs_as_it_starts_is_our_fault(tmp_path: Path) -> None:
    spec = a_bundle(tmp_path, "cjs")
    for timeout_s in (12, 30, LONG_S):
        async with a_suite_context(tmp_path, timeout_s=timeout_s) as ctx:
            harness = ctx.network.scripts()
            with hanging_browser() as browser:
                runtimes = dataclasses.replace(harness.runtimes, browser=browser)
                broken = dataclasses.replace(harness, runtimes=runtimes)
                object.__setattr__(ctx.network, "harness", broken)
                try:
                    await PlaywrightRunner().observe(spec, ctx)
                except BrowserDidNotStartError:
                    return
    pytest.fail("there was time enough for a launch")


async def test_a_bundle_that_cannot_be_had_is_our_fault(tmp_path: Path) -> None:
    with pytest.raises(BundleError):
        await seen(tmp_path, PlaywrightSpec(bundle_sha256="0" * 64))
