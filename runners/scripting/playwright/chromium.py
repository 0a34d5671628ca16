"""Chromium for scripts: its options, a browser registry for Playwright, and a test that it starts.

The registry is a folder that looks to each Playwright of a suite as if it had downloaded its
browsers. It holds ffmpeg, without which every test that records a video fails, and serves tools
that start a browser past our hook. Firefox and WebKit are not in it.
"""

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from runners.scripting.harness import Harness
from runners.scripting.node.runtimes import MissingRuntimeError
from runners.scripting.playwright.reporter import LostLaunch
from sandbox.program import Limits, Program
from sandbox.sandbox import Sandbox
from sandbox.workspace import Workspace

_MARKERS: Final = ("INSTALLATION_COMPLETE", "DEPENDENCIES_VALIDATED")
_REVISION: Final = re.compile(r"[0-9A-Za-z_.-]{1,40}")
_LARGEST_BYTES: Final = 1_000_000
_MOST_BROWSERS: Final = 100
"""Playwright's own list has about fifteen."""
_CHAINS: Final = (
    ("@playwright/test", "playwright", "playwright-core"),
    ("@playwright/test", "playwright-core"),
    ("playwright", "playwright-core"),
    ("playwright-core",),
)
"""Chains of packages, each of which depends on the next, that lead to playwright-core."""
_PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "chromium": ("chrome-linux/chrome", "chrome-linux64/chrome", "chrome-linux-arm64/chrome"),
    "chromium-headless-shell": (
        "chrome-linux/headless_shell",
        "chrome-headless-shell-linux64/chrome-headless-shell",
        "chrome-headless-shell-linux-arm64/chrome-headless-shell",
    ),
    "ffmpeg": ("ffmpeg-linux", "ffmpeg-linux-arm64"),
}
"""The paths at which Playwright versions of several years look for each program."""


def resolve_package(name: str, folder: Path) -> Path | None:
    """Find the real folder of a package as Node resolves it from a folder. None: there is none."""
    real = folder.resolve()
    for parent in (real, *real.parents):
        found = parent / "node_modules" / name
        if os.path.isfile(found / "package.json"):  # noqa: PTH113 - a closed folder is no error
            return found.resolve()
    return None


def make_registry(into: Path, project: Path, *, browser: Path | None, ffmpeg: Path | None) -> None:
    """Fill a registry for the Playwright versions that a project resolves; it blocks.

    Raises:
        OSError: it cannot be written.
    """
    programs = {"chromium": browser, "chromium-headless-shell": browser, "ffmpeg": ffmpeg}
    into.mkdir(parents=True, exist_ok=True)
    for name, revision in sorted(_find_needed_programs(project)):
        program = programs[name]
        if program is not None:
            _link_program(into / f"{name.replace('-', '_')}-{revision}", _PLACES[name], program)


def _find_needed_programs(project: Path) -> set[tuple[str, str]]:
    """Find the programs and revisions that each Playwright needs."""
    return {
        (name, revision)
        for core in _find_playwright_cores(project)
        for name, revision in _read_revisions(core / "browsers.json")
    }


def _find_playwright_cores(project: Path) -> set[Path]:
    """Find the folders of playwright-core; a suite may have several."""
    found = set()
    for chain in _CHAINS:
        place: Path | None = project
        for name in chain:
            place = None if place is None else resolve_package(name, place)
        if place is not None:
            found.add(place)
    return found


def _read_revisions(path: Path) -> Iterator[tuple[str, str]]:
    for browser in _read_browsers(path):
        name, others = browser.get("name"), browser.get("revisionOverrides")
        revisions = [
            browser.get("revision"),
            *(others.values() if isinstance(others, dict) else ()),
        ]
        if not isinstance(name, str) or name not in _PLACES:
            continue
        fitting = (one for one in revisions if isinstance(one, str) and _REVISION.fullmatch(one))
        yield from ((name, revision) for revision in fitting)


def _read_browsers(path: Path) -> list[dict[str, Any]]:
    """Read the list of browsers from a suite's own file, which may contain anything."""
    try:
        is_small = path.is_file() and path.stat().st_size <= _LARGEST_BYTES
        text = path.read_text() if is_small else "{}"
        browsers = json.loads(text)["browsers"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    listed = browsers[:_MOST_BROWSERS] if isinstance(browsers, list) else []
    return [one for one in listed if isinstance(one, dict)]


def _link_program(folder: Path, places: tuple[str, ...], program: Path) -> None:
    for place in places:
        link = folder / place
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(program)
    for marker in _MARKERS:
        (folder / marker).touch()


_LIMIT_S: Final = 10.0
"""It takes a tenth of a second."""
_LIMITS: Final = Limits(memory_mb=1500)


class LaunchTest(msgspec.Struct, frozen=True, kw_only=True):
    """How to start a browser as a run started it, to see whether it can start at all."""

    sandbox: Sandbox
    browser: Path
    environment: Callable[[Path], dict[str, str]]
    """Builds the environment of a process with this home folder."""


async def is_our_fault(lost: LostLaunch, test: LaunchTest, *, within_s: float) -> bool:
    """Whether this machine, and not the script, kept a browser from starting.

    `within_s`: the time that is left for the test; a browser that needs longer counts as failed.

    Raises:
        OSError: our fault.
    """
    return lost.is_slow or not await _can_start(test, min(_LIMIT_S, within_s))


async def _can_start(test: LaunchTest, limit_s: float) -> bool:
    """Whether a browser starts and answers in a new folder, where no script has run."""
    workspace = Workspace()
    home = workspace.folder / "home"
    home.mkdir()
    arguments = ("--no-sandbox", "--headless", *BROWSER_ARGUMENTS, "--dump-dom", "about:blank")
    program = Program(
        argv=(str(test.browser), *arguments),
        folder=home,
        env=test.environment(home),
        limits=_LIMITS,
        facts_fd=False,
    )
    try:
        child = await test.sandbox.start(program, owner=workspace)
        ended = await child.wait(timeout_s=limit_s, grace_s=0, on_fact=lambda _: None)
    finally:
        await asyncio.to_thread(workspace.remove)
    return ended.exit_code == 0 and any("<html>" in line.message for line in ended.log)


BROWSER_ARGUMENTS: Final = (
    "--disable-gpu",
    "--disable-quic",
    "--disable-component-update",
    "--disable-sync",
)
_NAME: Final = re.compile(r"[^=\0]+")
_RESERVED: Final = re.compile(
    r"(NODE|LD|PW|PWTEST|PLAYWRIGHT|PICKET)_.*|PATH|HOME|TMPDIR|TMP|TEMP|SHELL|CI|SERVICE"
)
"""Variables that control Node, Playwright or the harness, which a check must not set."""


def require_browser(harness: Harness) -> Path:
    """Return the path of Chromium.

    Raises:
        MissingRuntimeError: there is none.
    """
    if harness.runtimes.browser is None:
        raise MissingRuntimeError("There is no Chromium on this machine.")
    return harness.runtimes.browser


def filter_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Drop the variables that control Node, Playwright or the harness."""
    return {
        name: value
        for name, value in variables.items()
        if _NAME.fullmatch(name) and not _RESERVED.fullmatch(name) and "\0" not in value
    }
