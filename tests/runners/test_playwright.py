"""Playwright suites run as their owners wrote them, and say which test did not pass."""

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contract.job import Variable
from contract.result import FailureKind
from contract.scripted import PlaywrightSpec
from contract.suite_evidence import PlaywrightEvidence, TestCounts
from runners.kit.isolation.workspace import PREFIX
from runners.kit.observation import Observation
from runners.kit.scripts.runtimes import MissingRuntimeError
from runners.kit.suites import run as suite_run
from runners.kit.suites.bundle import BundleError
from runners.kit.suites.registry import RegistryAwayError
from runners.playwright import BrowserDidNotStartError, PlaywrightRunner
from tests.builders.browser_programs import hanging_browser
from tests.builders.patience import LONG_S
from tests.builders.suites import (
    NEWEST,
    a_bundle,
    a_fresh_scaffold,
    a_suite_context,
    a_written_suite,
    seen,
)
from tests.servers.http_origin import begins, http_origin, reply

FRONT = b"<title>Playwright</title><a href=#>Get started</a><h1>Installation</h1>"
BEFORE = "The packages were installed before, and are used again."


def told(observation: Observation) -> PlaywrightEvidence:
    assert isinstance(observation.evidence, PlaywrightEvidence)
    return observation.evidence


def words(observation: Observation) -> str:
    """The failure's sentence, with a plain sign between the titles."""
    assert observation.failure is not None
    return observation.failure.message.replace("\u203a", ">")


def said(observation: Observation) -> list[str]:
    return [line.message for line in observation.log]


def names(observation: Observation) -> set[str]:
    return {artifact.name for artifact in observation.artifacts}


def changed(spec: PlaywrightSpec, **changes: Any) -> PlaywrightSpec:
    return msgspec.structs.replace(spec, **changes)


async def test_playwrights_scaffold_runs_in_our_browser_whatever_its_version(
    tmp_path: Path, playwright_version: str
) -> None:
    spec = a_bundle(tmp_path, "scaffold", lock=f"versions/{playwright_version}")
    ran = await seen(tmp_path, spec)
    assert ran.failure is None, said(ran)
    assert told(ran).playwright_version == playwright_version
    assert told(ran).counts == TestCounts(planned=2, passed=2)
    kinds = [artifact.kind for artifact in ran.artifacts]
    assert kinds[0] == "report"
    assert kinds.count("trace") == 2
    assert kinds.count("video") >= 1


async def test_what_a_suite_leaves_open_is_as_documented_and_its_reporters_are_kept(
    tmp_path: Path, playwright_version: str
) -> None:
    spec = a_bundle(tmp_path, "defaults", lock=f"versions/{playwright_version}")
    ran = await seen(tmp_path, spec, timeout_s=LONG_S)
    assert ran.failure is None, said(ran)
    assert "The suite's own reporter saw that it passed." in said(ran)
    assert (told(ran).counts.passed, told(ran).counts.flaky) == (3, 1)
    kinds = [artifact.kind for artifact in ran.artifacts]
    # Of the try that failed a picture, of the second one a video of its page.
    assert kinds.count("screenshot") == 1
    assert kinds.count("video") == 1
    assert kinds.count("trace") == 7, "each try has one, also of a test that is skipped"


@pytest.mark.parametrize(
    ("name", "manifest", "tests"),
    [
        ("web_server", {}, 3),
        ("typescript_paths", {}, 1),
        ("esm", {"type": "module"}, 1),
        ("cjs", {}, 1),
    ],
)
async def test_a_suite_runs_as_it_is_written(
    tmp_path: Path, name: str, manifest: dict[str, str], tests: int
) -> None:
    ran = await seen(tmp_path, a_bundle(tmp_path, name, **manifest))
    assert ran.failure is None, said(ran)
    assert told(ran).counts == TestCounts(planned=tests, passed=tests)
    assert ran.timings.installation, "it is told apart from the time of the tests"
    assert any(line.startswith("The packages took ") for line in said(ran))


async def test_projects_fixtures_retries_and_missing_browsers_are_told_apart(
    tmp_path: Path,
) -> None:
    ran = await seen(tmp_path, a_bundle(tmp_path, "projects"))
    failed = "[fox] tests/basket.spec.ts:5 > basket > holds a lamp @smoke: the browser firefox "
    assert words(ran).startswith(failed + "is not available at this location")
    by_name = {(test.project, test.title.split()[-1]): test for test in told(ran).tests}
    for project in ("desktop", "phone"):
        assert by_name[project, "@smoke"].outcome == "expected"
        assert by_name[project, "try"].outcome == "flaky"
        assert by_name[project, "try"].retries == 1
        assert by_name[project, "yet"].outcome == "skipped"
        assert by_name[project, "broken"].outcome == "expected"
    assert told(ran).counts.failed == 2


async def test_projects_and_tags_are_chosen_by_the_test_command(tmp_path: Path) -> None:
    command = "npx playwright test --project desktop --grep '@smoke'"
    ran = await seen(tmp_path, changed(a_bundle(tmp_path, "projects"), test_command=command))
    assert ran.failure is None, said(ran)
    assert {test.project for test in told(ran).tests} == {"login", "desktop"}
    assert told(ran).counts.planned == 2


async def test_half_of_a_suite_runs_where_the_command_says_so(tmp_path: Path) -> None:
    command = "npx playwright test --shard=1/2 --fully-parallel --project=desktop --workers=1"
    ran = await seen(tmp_path, changed(a_bundle(tmp_path, "projects"), test_command=command))
    assert ran.failure is None, said(ran)
    assert 1 < told(ran).counts.planned < 5


async def test_brands_of_chromium_run_in_ours_and_other_browsers_are_named(tmp_path: Path) -> None:
    ran = await seen(tmp_path, a_bundle(tmp_path, "browsers"))
    outcomes = {test.project: test.outcome for test in told(ran).tests}
    assert outcomes == {
        "chrome": "expected",
        "edge": "expected",
        "beta": "expected",
        "fox": "unexpected",
        "safari": "unexpected",
    }
    for browser in ("firefox", "webkit"):
        sentence = f"There is no {browser} at this location, only Chromium."
        assert any(sentence in error for test in told(ran).tests for error in test.errors)
    assert words(ran).endswith("is not available at this location, only Chromium. 1 more failed.")


@pytest.mark.parametrize(
    ("lock", "command"),
    [
        ("npm_workspace", "npm run e2e"),
        ("pnpm_workspace", "pnpm run e2e"),
        ("yarn_workspace", "yarn e2e"),
        ("yarn_berry_workspace", "yarn e2e"),
        ("bun_workspace", "bun run e2e"),
    ],
)
async def test_a_package_of_a_monorepo_runs_by_its_own_script(
    tmp_path: Path, lock: str, command: str
) -> None:
    spec = changed(
        a_bundle(tmp_path, "monorepo", lock=f"locks/{lock}"),
        working_dir="packages/e2e",
        test_command=command,
    )
    ran = await seen(tmp_path, spec)
    assert ran.failure is None, said(ran)
    assert [test.project for test in told(ran).tests] == ["small"]
    assert [one.kind for one in ran.artifacts] == ["report", "trace"]
    because = "it has packages or patches of its own"
    assert f"The packages are installed in place: {because}." in said(ran)


async def test_packages_are_installed_once_and_anew_when_asked_for(tmp_path: Path) -> None:
    spec = a_bundle(tmp_path, "node_only")
    for again in (False, True):
        ran = await seen(tmp_path, spec)
        assert ran.failure is None, said(ran)
        assert told(ran).counts == TestCounts(planned=3, passed=3)
        assert not again or said(ran)[0] == BEFORE
    fresh = await seen(
        tmp_path,
        changed(spec, refresh_cache=True),
        environment={"CI": "true"},
        variables=(Variable(key="EXPECTED_CI", value="true"),),
    )
    assert fresh.failure is None, said(fresh)
    assert said(fresh)[0].startswith("$ npm ci")


async def test_a_suites_own_variables_win_over_those_that_tell_of_its_run(tmp_path: Path) -> None:
    own = ("CHECK_NAME", "EXPECTED_NAME", "HOME", "SERVICE")
    ran = await seen(
        tmp_path,
        a_bundle(tmp_path, "node_only"),
        environment={"CHECK_NAME": "Cart"},
        variables=tuple(Variable(key=name, value="mine") for name in own),
    )
    assert ran.failure is None, said(ran)


async def test_tests_read_the_locations_secrets_and_what_installs_packages_does_not(
    tmp_path: Path,
) -> None:
    look = """
        const { test, expect } = require('@playwright/test');
        const { readFileSync } = require('node:fs');
        test('reads', async () => {
          expect(process.env.SERVICE_SECRET_DB).toBe('of-the-location');
          expect(process.env.SERVICE_SECRET_OWN).toBe('of-the-check');
          expect(readFileSync('installed.txt', 'utf8')).toContain('SERVICE_SECRET_OWN');
          expect(readFileSync('installed.txt', 'utf8')).not.toContain('of-the-location');
        });
    """
    spec = a_written_suite(tmp_path, {"look.spec.js": look})
    spec = changed(spec, install_command=f"env > installed.txt; {spec.install_command}")
    names = ("SERVICE_SECRET_DB", "SERVICE_SECRET_OWN")
    ran = await seen(
        Path("/"),
        spec,
        location_secrets=dict.fromkeys(names, "of-the-location"),
        variables=(Variable(key="SERVICE_SECRET_OWN", value="of-the-check"),),
    )
    assert ran.failure is None, said(ran)


@pytest.mark.parametrize("manager", ["pnpm", "yarn", "yarn_berry", "bun"])
async def test_other_package_managers_install_by_their_lock_files(
    tmp_path: Path, manager: str
) -> None:
    ran = await seen(tmp_path, a_bundle(tmp_path, "cjs", lock=f"locks/{manager}"))
    assert ran.failure is None, said(ran)
    assert told(ran).counts.passed == 1


async def test_what_npm_init_playwright_writes_today_runs(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    if not pytestconfig.getoption("every_playwright"):
        pytest.skip("what npm has today may change by itself; --every-playwright tries it")
    async with http_origin(begins(reply(FRONT, content_type="text/html"))) as origin:
        spec = await asyncio.to_thread(a_fresh_scaffold, tmp_path, url=origin.url())
        ran = await seen(tmp_path, spec)
        outcomes = {(test.project, test.outcome) for test in told(ran).tests}
        others = {("firefox", "unexpected"), ("webkit", "unexpected")}
        assert outcomes == {("chromium", "expected"), *others}, said(ran)
        command = "npx playwright test --project=chromium"
        ran = await seen(tmp_path, changed(spec, test_command=command))
        assert ran.failure is None, said(ran)
        assert told(ran).counts.passed == 2


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
    monkeypatch.setattr("runners.kit.suites.run.LIMITS", limits)
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


async def test_a_lock_file_that_does_not_fit_is_told_by_the_package_manager(tmp_path: Path) -> None:
    spec = a_bundle(tmp_path, "cjs", dependencies={"left-pad": "1.3.0"})
    ran = await seen(tmp_path, spec)
    assert words(ran).startswith("Installing the packages with `npm ci --no-audit --no-fund` ended")
    assert "can only install packages when your package.json and package-lock.json" in words(ran)


async def test_a_lock_file_that_nobody_can_read_is_the_suites_fault(tmp_path: Path) -> None:
    spec = a_bundle(tmp_path, "cjs", lock="locks/broken")
    assert "package-lock.json is no JSON" in words(await seen(tmp_path, spec))


async def test_what_a_suite_leaves_in_our_places_is_not_in_our_way(tmp_path: Path) -> None:
    # As root nothing of this can be made: the run's own folder belongs to us then.
    command = "mkdir -p ../browsers ../test-results.json/deep; echo ENOSPC; npm ci"
    spec = changed(a_bundle(tmp_path, "leaves"), install_command=command)
    ran = await seen(tmp_path, spec)
    assert ran.failure is None, said(ran)
    kinds = [artifact.kind for artifact in ran.artifacts]
    assert kinds == ["report", "trace"]
    assert "ENOSPC" in said(ran)


async def test_a_suite_without_a_lock_file_is_refused(tmp_path: Path) -> None:
    ran = await seen(tmp_path, a_bundle(tmp_path, "cjs", lock="scaffold/tests"))
    assert "The suite has no lock file" in words(ran)


async def test_a_suite_without_playwright_is_refused(tmp_path: Path) -> None:
    spec = a_bundle(tmp_path, "cjs", lock="locks/nothing", devDependencies={"picket-left": "*"})
    ran = await seen(tmp_path, changed(spec, install_command="mkdir node_modules; true"))
    assert words(ran) == ("The suite's packages hold no @playwright/test; add it to package.json.")


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


@pytest.mark.parametrize("lock", [f"versions/{NEWEST}", "locks/pnpm"])
async def test_a_registry_that_cannot_be_reached_is_our_fault(
    tmp_path: Path, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    spec = changed(a_bundle(tmp_path, "cjs", lock=lock), refresh_cache=True)
    at_once = (Variable(key="npm_config_fetch_retries", value="0"),)
    with pytest.raises(RegistryAwayError, match=r"The registry of packages cannot be reached: "):
        await seen(tmp_path, spec, variables=at_once)


async def test_a_registry_of_the_suites_own_that_cannot_be_reached_is_its_fault(
    tmp_path: Path,
) -> None:
    spec = changed(a_bundle(tmp_path, "cjs"), refresh_cache=True)
    own = {"registry": "http://127.0.0.1:9", "replace_registry_host": "always", "noproxy": "*"}
    own["fetch_retries"] = "0"
    variables = tuple(Variable(key=f"npm_config_{key}", value=own[key]) for key in own)
    ran = await seen(tmp_path, spec, variables=variables)
    assert words(ran).startswith("Installing the packages with `npm ci --no-audit --no-fund` ended")
    assert "ECONNREFUSED" in "".join(said(ran))


async def test_what_a_suite_assigns_to_a_secrets_name_is_told_to_the_agent(tmp_path: Path) -> None:
    spec = a_bundle(tmp_path, "tells")
    async with a_suite_context(tmp_path) as ctx:
        ran = await PlaywrightRunner().observe(spec, ctx)
        assert ran.failure is None, said(ran)
        told_secrets = set(ctx.workspace.secrets)
    assert told_secrets == {"made-by-the-configuration", "made-by-the-test"}
