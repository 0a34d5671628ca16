"""What `picket setup` installed on this machine is whole, locked, and starts."""

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from contract.runtimes import RUNTIMES
from runners.installation.runtimes import estimate_cost
from runners.scripting.node.runtimes import Runtime
from sandbox.users import SLOT_UIDS
from tests.builders.scripts import runtimes_here

FOUND = runtimes_here()
IS_CI = bool(os.environ.get("CI"))
EACH = pytest.mark.parametrize("runtime", FOUND.by_id.values(), ids=FOUND.installed)
needs_browser = pytest.mark.skipif(
    FOUND.browser is None and not IS_CI, reason="no Chromium: picket setup"
)
LOAD_ALL = """
for (const name of JSON.parse(process.argv[1])) {
  try { require(name); } catch (problem) {
    if (problem.code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw problem;
  }
}
"""
ONE_PAGE = """
const { test, expect } = require('@playwright/test');
test('a page', async ({ page }) => {
  await page.setContent('<h1>Hello</h1>');
  await expect(page.locator('h1')).toHaveText('Hello');
});
"""
OF_ROOT_ALONE = 0o600


def node(runtime: Runtime, *words: str, cwd: Path, **environ: str) -> str:
    """What Node prints, run as checks run it."""
    done = subprocess.run(
        [runtime.node, *words],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), "TMPDIR": str(cwd), **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(not (FOUND.installed or IS_CI), reason="no runtimes: picket setup")
def test_every_runtime_is_installed_and_can_record_videos() -> None:
    assert FOUND.installed == tuple(RUNTIMES)
    assert FOUND.ffmpeg is not None


@EACH
def test_a_runtime_has_the_versions_that_the_contract_names(
    runtime: Runtime, tmp_path: Path
) -> None:
    facts = RUNTIMES[runtime.id]
    assert node(runtime, "--version", cwd=tmp_path) == f"v{facts.node}\n"
    assert (runtime.node_version, runtime.playwright) == (facts.node, facts.playwright)
    for name, version in facts.libraries.items():
        package = json.loads((runtime.modules / name / "package.json").read_bytes())
        assert package["version"] == version


@EACH
def test_nothing_in_a_runtime_leads_out_of_it(runtime: Runtime) -> None:
    """The users of runs may not enter the folders of whoever installed it."""
    home = runtime.node.parents[1]
    links = [path for path in home.rglob("*") if path.is_symlink()]
    assert links
    for link in links:
        assert not link.readlink().is_absolute(), link
        assert link.resolve().is_relative_to(home.resolve()), link


@EACH
def test_a_runtime_takes_the_room_that_is_announced(runtime: Runtime) -> None:
    seen = {}
    for path in runtime.node.parents[1].rglob("*"):
        found = path.lstat()
        seen[found.st_ino] = found.st_blocks * 512
    announced = estimate_cost([runtime.id]).disk_mb
    assert 0.8 * announced < sum(seen.values()) / 2**20 < 1.2 * announced


@EACH
def test_every_library_loads(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(runtime.modules)
    names = json.dumps(list(RUNTIMES[runtime.id].libraries))
    ahead = str(runtime.compile_cache)
    node(runtime, "-e", LOAD_ALL, names, cwd=tmp_path, NODE_COMPILE_CACHE=ahead)


@EACH
def test_npm_and_npx_start_by_their_names(runtime: Runtime, tmp_path: Path) -> None:
    path = f"{runtime.node.parent}:/usr/bin:/bin"
    for name in ("npm", "npx"):
        command = (runtime.node.parent / name, "--version")
        done = subprocess.run(command, env={"PATH": path, "HOME": str(tmp_path)}, check=True)
        assert done.returncode == 0


@EACH
def test_the_compile_cache_serves_every_user_and_nobody_may_write_to_it(runtime: Runtime) -> None:
    assert runtime.compile_cache is not None
    users = {path.name.rpartition("-")[2] for path in runtime.compile_cache.iterdir()}
    assert {*map(str, SLOT_UIDS), "10001"} <= users
    for place in (runtime.compile_cache, *runtime.compile_cache.rglob("*")):
        with suppress(FileNotFoundError):  # Node as root renames what it has written
            mode = place.stat().st_mode
            if mode & 0o777 == OF_ROOT_ALONE:
                continue  # a test that ran Node as root has added it, whom no mode keeps out
            assert mode & 0o222 == 0, place
            assert mode & 0o004, place


@needs_browser
@EACH
def test_a_page_is_tested_with_the_browser(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(runtime.modules)
    (tmp_path / "page.spec.js").write_text(ONE_PAGE)
    launch = {"executablePath": str(FOUND.browser), "args": ["--no-sandbox", "--disable-gpu"]}
    config = f"module.exports = {{ use: {{ launchOptions: {json.dumps(launch)} }} }};\n"
    (tmp_path / "playwright.config.js").write_text(config)
    cli = runtime.modules / "@playwright/test/cli.js"
    said = node(runtime, str(cli), "test", "--reporter=line", cwd=tmp_path)
    assert "1 passed" in said
