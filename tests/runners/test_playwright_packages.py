"""Packages of a suite: what installs them, when, and whose fault it is that they cannot be."""

from pathlib import Path

import pytest

from contract.evidence import TestCounts
from contract.job import Variable
from runners.playwright import PlaywrightRunner
from runners.scripting.suites.install import RegistryUnreachableError
from tests.builders.suites import NEWEST, a_bundle, a_suite_context, seen
from tests.builders.told_suites import changed, said, told, words

BEFORE = "The packages were installed before, and are used again."


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
    suites = None
    for again in (False, True):
        # Of the same agent: without users of their own, only it knows that nobody changed them.
        async with a_suite_context(tmp_path, suites=suites) as ctx:
            suites = ctx.network.scripts().suites
            ran = await PlaywrightRunner().observe(spec, ctx)
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


@pytest.mark.parametrize("manager", ["pnpm", "yarn", "yarn_berry", "bun"])
async def test_other_package_managers_install_by_their_lock_files(
    tmp_path: Path, manager: str
) -> None:
    ran = await seen(tmp_path, a_bundle(tmp_path, "cjs", lock=f"locks/{manager}"))
    assert ran.failure is None, said(ran)
    assert told(ran).counts.passed == 1


async def test_a_lock_file_that_does_not_fit_is_told_by_the_package_manager(tmp_path: Path) -> None:
    spec = a_bundle(tmp_path, "cjs", dependencies={"left-pad": "1.3.0"})
    ran = await seen(tmp_path, spec)
    assert words(ran).startswith("Installing the packages with `npm ci --no-audit --no-fund` ended")
    assert "can only install packages when your package.json and package-lock.json" in words(ran)


async def test_a_lock_file_that_nobody_can_read_is_the_suites_fault(tmp_path: Path) -> None:
    spec = a_bundle(tmp_path, "cjs", lock="locks/broken")
    assert "package-lock.json is no JSON" in words(await seen(tmp_path, spec))


async def test_a_suite_without_a_lock_file_is_refused(tmp_path: Path) -> None:
    ran = await seen(tmp_path, a_bundle(tmp_path, "cjs", lock="scaffold/tests"))
    assert "The suite has no lock file" in words(ran)


async def test_a_suite_without_playwright_is_refused(tmp_path: Path) -> None:
    spec = a_bundle(tmp_path, "cjs", lock="locks/nothing", devDependencies={"picket-left": "*"})
    ran = await seen(tmp_path, changed(spec, install_command="mkdir node_modules; true"))
    assert words(ran) == ("The suite's packages hold no @playwright/test; add it to package.json.")


@pytest.mark.parametrize("lock", [f"versions/{NEWEST}", "locks/pnpm"])
async def test_a_registry_that_cannot_be_reached_is_our_fault(
    tmp_path: Path, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    spec = changed(a_bundle(tmp_path, "cjs", lock=lock), refresh_cache=True)
    at_once = (Variable(key="npm_config_fetch_retries", value="0"),)
    with pytest.raises(
        RegistryUnreachableError, match=r"The registry of packages cannot be reached: "
    ):
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
