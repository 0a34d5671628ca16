"""Builders of Playwright suites: the folders of tests/suites, with a lock file, as bundles."""

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from agent.self_test import BOOT_SUITE
from contract.checks import PlaywrightSpec
from runners.playwright import PlaywrightRunner
from runners.runner import Observation, RunContext
from runners.scripting.suites.bundle_archive import pack
from runners.scripting.suites.bundle_cache import BundleError
from runners.scripting.suites.resources import SuiteOptions, Suites, open_suites
from tests.builders.scripts import a_scripted_context, runtimes_here

ROOT: Final = Path(__file__).parents[2]
SUITES: Final = ROOT / "tests/suites"
PACKAGES: Final = ROOT / ".tools/packages"
"""Kept from one test run to the next: keys are contents, so nothing stale is found."""
BUNDLES: Final = Path("/")
"""Any bundle may be named by its path then."""
NEWEST: Final = "1.65.1"
VERSIONS: Final = ("1.40.1", "1.51.1", NEWEST)
"""Of Playwright, which each run of the tests tries."""
FURTHER_VERSIONS: Final = ("1.43.1", "1.46.1", "1.49.1", "1.54.2", "1.58.2", "1.61.1")
"""Which `--every-playwright` adds."""
ASKING: Final = """
const { test } = require('@playwright/test');

test('asks', async ({ request }) => {
  await request.get('URL', { timeout: 0 });
});
"""
_OF_THE_NETWORK: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS")


class Shelf:
    """Bundles of one test, by a name in place of a hash."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def fetch(self, sha256: str) -> Path:
        found = self._folder / sha256
        if not found.is_file():
            raise BundleError(f"There is no bundle {sha256}.")
        return found


def a_bundle(
    folder: Path, suite: str, *, lock: str = f"versions/{NEWEST}", **manifest: Any
) -> PlaywrightSpec:
    """Pack a suite with the manifest and lock file of a folder; the spec that runs it.

    `manifest`: further fields of package.json.
    """
    project = folder / f"{suite}-project"
    project.mkdir()
    shutil.copy(SUITES / f"versions/{NEWEST}/package.json", project)
    shutil.copytree(SUITES / suite, project, dirs_exist_ok=True)
    shutil.copytree(SUITES / lock, project, dirs_exist_ok=True)
    if manifest:
        told = json.loads((project / "package.json").read_text())
        (project / "package.json").write_text(json.dumps({**told, **manifest}))
    pack(project, folder / suite)
    return PlaywrightSpec(bundle_sha256=suite)


def a_fresh_scaffold(folder: Path, *, url: str) -> PlaywrightSpec:
    """What `npm init playwright` writes today; its tests look at this page, not at theirs."""
    project = folder / "scaffold-of-today"
    project.mkdir()
    npm = runtimes_here().get(None).node.parent / "npm"
    written = subprocess.run(
        [npm, "init", "--yes", "playwright@latest", "--", "--quiet", "--no-browsers"],
        cwd=project,
        env={**os.environ, "PATH": f"{npm.parent}:/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert written.returncode == 0, written.stdout + written.stderr
    for path in (project / "tests").iterdir():
        path.write_text(path.read_text().replace("https://playwright.dev/", url))
    pack(project, folder / "scaffold.tar.gz")
    return PlaywrightSpec(bundle_sha256="scaffold.tar.gz")


def a_fetching_suite(stack: contextlib.ExitStack, url: str) -> PlaywrightSpec:
    """A suite that asks one address with the runtime's own Playwright; it installs a link."""
    place = Path(stack.enter_context(TemporaryDirectory()))
    return a_written_suite(place, {"ask.spec.js": ASKING.replace("URL", url)})


def a_written_suite(place: Path, files: Mapping[str, str]) -> PlaywrightSpec:
    """A suite of these files with the runtime's own Playwright; it installs a link."""
    project = place / "project"
    project.mkdir()
    for name, content in {
        "package.json": '{"name": "suite", "private": true}',
        "package-lock.json": '{"name": "suite", "lockfileVersion": 3, "packages": {}}',
        "playwright.config.js": "module.exports = { workers: 1, retries: 0, timeout: 0 };",
        **files,
    }.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(content)
    pack(project, place / "bundle")
    return PlaywrightSpec(
        bundle_sha256=str(place / "bundle"), install_command=BOOT_SUITE.install_command
    )


@contextlib.asynccontextmanager
async def a_suite_context(
    folder: Path, *, suites: Suites | None = None, **changes: Any
) -> AsyncIterator[RunContext]:
    """A context in which bundles of this folder can be run; `suites`: an earlier run's."""
    PACKAGES.mkdir(parents=True, exist_ok=True)
    network = {name: os.environ[name] for name in _OF_THE_NETWORK if name in os.environ}
    async with a_scripted_context(**changes) as ctx:
        harness = ctx.network.scripts()
        places = SuiteOptions(bundles=Shelf(folder), packages=PACKAGES, environment=network)
        own = dataclasses.replace(harness, suites=suites or open_suites(places, harness.sandbox))
        object.__setattr__(ctx.network, "harness", own)
        yield ctx


async def seen(folder: Path, spec: PlaywrightSpec, **changes: Any) -> Observation:
    """What comes of running it; its files are gone afterwards."""
    async with a_suite_context(folder, **changes) as ctx:
        return await PlaywrightRunner().observe(spec, ctx)
