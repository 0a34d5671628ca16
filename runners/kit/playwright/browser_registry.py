"""A folder that looks to each Playwright of a suite as if it had downloaded its browsers.

It supplies the encoder of videos, without which every test that records one fails, and serves
tools that start a browser past our hook. Firefox and WebKit are not in it.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

_MARKERS: Final = ("INSTALLATION_COMPLETE", "DEPENDENCIES_VALIDATED")
_REVISION: Final = re.compile(r"[0-9A-Za-z_.-]{1,40}")
_LARGEST_BYTES: Final = 1_000_000
_MOST_BROWSERS: Final = 100
"""A Playwright has about fifteen."""
_CHAINS: Final = (
    ("@playwright/test", "playwright", "playwright-core"),
    ("@playwright/test", "playwright-core"),
    ("playwright", "playwright-core"),
    ("playwright-core",),
)
"""Which package brings which, from the suite on."""
_PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "chromium": ("chrome-linux/chrome", "chrome-linux64/chrome", "chrome-linux-arm64/chrome"),
    "chromium-headless-shell": (
        "chrome-linux/headless_shell",
        "chrome-headless-shell-linux64/chrome-headless-shell",
        "chrome-headless-shell-linux-arm64/chrome-headless-shell",
    ),
    "ffmpeg": ("ffmpeg-linux", "ffmpeg-linux-arm64"),
}
"""Where the Playwrights of several years look for each program."""


def resolve_package(name: str, folder: Path) -> Path | None:
    """The real folder of a package as Node finds it from a folder. None: it does not."""
    real = folder.resolve()
    for parent in (real, *real.parents):
        found = parent / "node_modules" / name
        if os.path.isfile(found / "package.json"):  # noqa: PTH113 - a closed folder is no error
            return found.resolve()
    return None


def make_registry(into: Path, project: Path, *, browser: Path | None, ffmpeg: Path | None) -> None:
    """Fill the folder for the Playwrights that a project finds; it blocks.

    Raises:
        OSError: it cannot be written.
    """
    programs = {"chromium": browser, "chromium-headless-shell": browser, "ffmpeg": ffmpeg}
    into.mkdir(parents=True, exist_ok=True)
    for name, revision in sorted(_wanted(project)):
        program = programs[name]
        if program is not None:
            _place(into / f"{name.replace('-', '_')}-{revision}", _PLACES[name], program)


def _wanted(project: Path) -> set[tuple[str, str]]:
    """Program and revision, for each Playwright."""
    return {
        (name, revision)
        for core in _cores(project)
        for name, revision in _revisions(core / "browsers.json")
    }


def _cores(project: Path) -> set[Path]:
    """The folders of playwright-core; a suite may have several."""
    found = set()
    for chain in _CHAINS:
        place: Path | None = project
        for name in chain:
            place = None if place is None else resolve_package(name, place)
        if place is not None:
            found.add(place)
    return found


def _revisions(path: Path) -> Iterator[tuple[str, str]]:
    for browser in _listed(path):
        name, others = browser.get("name"), browser.get("revisionOverrides")
        revisions = [
            browser.get("revision"),
            *(others.values() if isinstance(others, dict) else ()),
        ]
        if not isinstance(name, str) or name not in _PLACES:
            continue
        fitting = (one for one in revisions if isinstance(one, str) and _REVISION.fullmatch(one))
        yield from ((name, revision) for revision in fitting)


def _listed(path: Path) -> list[dict[str, Any]]:
    """What the file lists; the suite brings it, so anything may stand in it."""
    try:
        is_small = path.is_file() and path.stat().st_size <= _LARGEST_BYTES
        text = path.read_text() if is_small else "{}"
        browsers = json.loads(text)["browsers"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    listed = browsers[:_MOST_BROWSERS] if isinstance(browsers, list) else []
    return [one for one in listed if isinstance(one, dict)]


def _place(folder: Path, places: tuple[str, ...], program: Path) -> None:
    for place in places:
        link = folder / place
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(program)
    for marker in _MARKERS:
        (folder / marker).touch()
