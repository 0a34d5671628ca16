"""Playwright suites run as their owners wrote them, with their projects, brands and variables."""

import asyncio
from pathlib import Path

import pytest

from contract.evidence import TestCounts
from contract.job import Variable
from runners.playwright import PlaywrightRunner
from tests.builders.patience import LONG_S
from tests.builders.suites import a_bundle, a_fresh_scaffold, a_suite_context, a_written_suite, seen
from tests.builders.told_suites import changed, said, told, words
from tests.servers.http_origin import begins, http_origin, reply

FRONT = b"<title>Playwright</title><a href=#>Get started</a><h1>Installation</h1>"


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
    assert said(ran)[said(ran).index("$ npx playwright test") + 1] == (
        "Set for this run: trace: 'on', and what the project leaves open: workers: 4, "
        "retries: 2, video: 'on-first-retry', screenshot: 'only-on-failure'."
    )
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


async def test_what_a_suite_leaves_in_our_places_is_not_in_our_way(tmp_path: Path) -> None:
    # As root nothing of this can be made: the run's own folder belongs to us then.
    command = "mkdir -p ../browsers ../test-results.json/deep; echo ENOSPC; npm ci"
    spec = changed(a_bundle(tmp_path, "leaves"), install_command=command)
    ran = await seen(tmp_path, spec)
    assert ran.failure is None, said(ran)
    kinds = [artifact.kind for artifact in ran.artifacts]
    assert kinds == ["report", "trace"]
    assert "ENOSPC" in said(ran)


async def test_what_a_suite_assigns_to_a_secrets_name_is_told_to_the_agent(tmp_path: Path) -> None:
    spec = a_bundle(tmp_path, "tells")
    async with a_suite_context(tmp_path) as ctx:
        ran = await PlaywrightRunner().observe(spec, ctx)
        assert ran.failure is None, said(ran)
        told_secrets = set(ctx.workspace.secrets)
    assert told_secrets == {"made-by-the-configuration", "made-by-the-test"}
