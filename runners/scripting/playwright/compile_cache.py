"""Compiles the code that runs of Playwright call, in advance.

The program is `python -m runners.scripting.playwright.compile_cache`. It runs a small test, with
the browser if there is one, and has V8 write the compiled code of Playwright's files beside each
runtime. All runs read that file, and none can write it.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from contract.checks import BrowserSpec, MultiStepSpec
from runners.scripting.node.files import script_files
from runners.scripting.node.runtimes import CODE_CACHE, Runtime, Runtimes, find_runtimes
from runners.scripting.playwright.chromium import make_registry
from runners.scripting.playwright.place import RunFolders, make_folders, place_files
from runners.scripting.playwright.run import Script, build_program
from sandbox.program import Limits, Program

_LIMIT_S: Final = 120
_WARMED: Final = "warmed"
_WITH_BROWSER: Final = "with a browser\n"
_WITHOUT_BROWSER: Final = "without a browser\n"
_MEMORY_MB: Final = 1500
_TEST: Final = """
const http = require('node:http');
const { test, expect } = require('@playwright/test');

const PAGE = '<title>Tea</title><h1>Tea</h1><input><button>Pour</button>';

test('page', async ({ FIXTURES }) => {
  const server = http.createServer((_, answer) => answer.end(PAGE));
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  const url = `http://127.0.0.1:${server.address().port}/`;
  const answer = await request.get(url);
  expect(answer.status()).toBe(200);
  STEPS
  server.close();
});
"""
_STEPS: Final = """
  await page.goto(url);
  await expect(page).toHaveTitle('Tea');
  await expect(page.getByRole('heading')).toHaveText('Tea');
  await page.locator('input').fill('green');
  await page.getByRole('button', { name: 'Pour' }).click();
  await expect(page.locator('h1')).toBeVisible();
"""


def warm(runtime: Runtime, runtimes: Runtimes) -> Path:
    """Make the code cache of a runtime.

    Raises:
        OSError: it cannot be written.
        subprocess.SubprocessError: the test run failed.
    """
    with tempfile.TemporaryDirectory(prefix="picket-warm-") as folder:
        place = make_folders(Path(folder).resolve())
        made = place.home / CODE_CACHE
        program = _build_program(runtime, runtimes, place)
        env = {
            **program.env,
            "PICKET_MAKES_CODE_CACHE": str(made),
            "PICKET_CODE_FOLDER": str(runtime.modules),
        }
        subprocess.run(  # noqa: S603 - our own command
            program.argv, cwd=program.folder, env=env, check=True, timeout=_LIMIT_S
        )
        put = _replace(made, runtime.node.parents[1] / CODE_CACHE)
    how = _WITHOUT_BROWSER if runtimes.browser is None else _WITH_BROWSER
    put.with_name(_WARMED).write_text(how)
    return put


def is_warm(runtime: Runtime, runtimes: Runtimes) -> bool:
    """Whether a valid code cache exists, made with the browser if there is one now."""
    made = runtime.node.parents[1] / _WARMED
    suffices = runtimes.browser is None or (made.is_file() and made.read_text() == _WITH_BROWSER)
    return runtime.code_cache is not None and suffices


def _build_program(runtime: Runtime, runtimes: Runtimes, place: RunFolders) -> Program:
    spec = _build_spec(drives_browser=runtimes.browser is not None)
    script = Script(spec, runtime, runtimes.browser, runtimes.ffmpeg, {})
    place_files(place, script_files(spec), runtime)
    if script.records_video:
        make_registry(place.browsers, place.root, browser=None, ffmpeg=script.ffmpeg)
    program = build_program(
        script,
        place,
        environment={"PATH": os.defpath, "HOME": str(place.home), "TMPDIR": str(place.home)},
        settings={"artifacts": "retain-on-failure"},
        limits=Limits(memory_mb=_MEMORY_MB),
    )
    for name in ("NODE_COMPILE_CACHE", "PICKET_FACTS_FD"):
        program.env.pop(name, None)
    return program


def _build_spec(*, drives_browser: bool) -> BrowserSpec | MultiStepSpec:
    if drives_browser:
        return BrowserSpec(script=_build_test("request, page", _STEPS))
    return MultiStepSpec(script=_build_test("request", ""))


def _build_test(fixtures: str, steps: str) -> str:
    return _TEST.replace("FIXTURES", fixtures).replace("STEPS", steps)


def _replace(made: Path, target: Path) -> Path:
    """Replace the file atomically: runs may be reading the old one, and power may fail."""
    new = target.with_name(f"{target.name}.new")
    new.unlink(missing_ok=True)
    with new.open("wb") as file:
        file.write(made.read_bytes())
        file.flush()
        os.fsync(file.fileno())
    new.chmod(0o444)
    return new.replace(target)


def main() -> int:
    """Warm all runtimes of this machine; 1 if there is none, or one could not be warmed."""
    runtimes = find_runtimes()
    if not runtimes.by_id:
        sys.stderr.write("No runtime is installed: picket setup\n")
    warmed = [_try_to_warm(runtime, runtimes) for runtime in runtimes.by_id.values()]
    return 0 if warmed and all(warmed) else 1


def _try_to_warm(runtime: Runtime, runtimes: Runtimes) -> bool:
    try:
        warm(runtime, runtimes)
    except (OSError, subprocess.SubprocessError) as problem:
        sys.stderr.write(f"The runtime {runtime.id} could not be warmed: {problem}\n")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
