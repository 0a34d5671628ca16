"""The folders of one Playwright run, and its command line and environment."""

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
    """The folders of one Playwright run."""

    root: Path
    """The check's own files; the working directory."""
    output: Path
    """The folder that Playwright writes to, and that it removes and recreates: therefore its parent
    belongs to the run as well."""
    home: Path
    browsers: Path
    """The browser registry, in which Playwright looks for ffmpeg."""


def make_folders(folder: Path) -> RunFolders:
    """Make the folders within that of a run; it blocks.

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
    """Write the check's files, and link the runtime's libraries; it blocks.

    Raises:
        OSError: they cannot be written.
    """
    write_files(files, place.root)
    (place.root / "node_modules").symlink_to(runtime.modules)


def build_node_command(runtime: Runtime) -> tuple[str, ...]:
    """Build the command line of Node for Playwright, up to the file to run."""
    preload = runtime.harness / "playwright/preload.cjs"
    return (str(runtime.node), *_NODE_ARGUMENTS, "--require", str(preload))


def build_load_environment(runtime: Runtime, place: RunFolders) -> dict[str, str]:
    """Build the variables that Node and Playwright read while they load."""
    cache, code = runtime.compile_cache, runtime.code_cache
    return {
        **({} if cache is None else {"NODE_COMPILE_CACHE": str(cache)}),
        **({} if code is None else {"PICKET_CODE_CACHE": str(code)}),
        "PLAYWRIGHT_BROWSERS_PATH": str(place.browsers),
        "PICKET_FACTS_FD": "3",
    }
