"""The folders of one run of Playwright, and what it starts with there."""

from pathlib import Path
from typing import Final

import msgspec

from runners.scripting.node.files import ScriptFile, write_files
from runners.scripting.node.runtimes import Runtime

_NODE_ARGUMENTS: Final = (
    # Reading TypeScript and guessing what kind of module a file is are meant here.
    "--disable-warning=ExperimentalWarning",
    "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
    # Loading Playwright fills the young generation many times at V8's own size: 6 % of a run.
    "--min-semi-space-size=8",
    "--max-semi-space-size=32",
)


class RunFolders(msgspec.Struct, frozen=True):
    """The folders of one run."""

    root: Path
    """The check's own files; the working directory."""
    output: Path
    """What Playwright writes; it removes this folder and makes it anew, so the one above is the
    run's too."""
    home: Path
    browsers: Path
    """Where Playwright looks for its encoder of videos."""


def make_folders(folder: Path) -> RunFolders:
    """Folders within that of a run; it blocks.

    Raises:
        OSError: they cannot be made.
    """
    place = RunFolders(
        root=folder / "check",
        output=folder / "output" / "files",
        home=folder / "home",
        browsers=folder / "browsers",
    )
    for one in (place.root, place.output, place.home, place.browsers):
        one.mkdir(parents=True, exist_ok=True)
    return place


def place_files(place: RunFolders, files: tuple[ScriptFile, ...], runtime: Runtime) -> None:
    """Put the check's files there; it blocks.

    Raises:
        OSError: they cannot be written.
    """
    write_files(files, place.root)
    (place.root / "node_modules").symlink_to(runtime.modules)


def build_node_command(runtime: Runtime) -> tuple[str, ...]:
    """How Node is started for Playwright, up to what it is to run."""
    preload = runtime.harness / "playwright/preload.cjs"
    return (str(runtime.node), *_NODE_ARGUMENTS, "--require", str(preload))


def build_load_environment(runtime: Runtime, place: RunFolders) -> dict[str, str]:
    """Variables that Node and Playwright read as they load."""
    cache, code = runtime.compile_cache, runtime.code_cache
    return {
        **({} if cache is None else {"NODE_COMPILE_CACHE": str(cache)}),
        **({} if code is None else {"PICKET_CODE_CACHE": str(code)}),
        "PLAYWRIGHT_BROWSERS_PATH": str(place.browsers),
        "PICKET_FACTS_FD": "3",
    }
