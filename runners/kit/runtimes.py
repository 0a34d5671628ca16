"""Finds what runs scripts on this machine: Node, its libraries by runtime, and the browser.

`scripts/runtimes.sh` lays a runtime out as a folder named by its id:

    bin/              node, npm and npx, to be put in front of PATH
    node_modules/     the libraries of its lock file, read-only for scripts
    compile-cache/    what Node compiled of them in advance
    ready             written last
"""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

_BROWSERS: Final = (
    # Debian's command of the same name is a shell that stays between us and the browser.
    "/usr/lib/chromium/chromium-headless-shell",
)
_FFMPEG: Final = "/usr/bin/ffmpeg"
_READY: Final = "ready"


class MissingRuntimeError(LookupError):
    """This machine has not got what a check runs on; another agent may have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """A fixed set of what scripts run on."""

    id: str
    node: Path
    """The program; npm and npx stand beside it."""
    modules: Path
    """The folder `node_modules` of its libraries."""
    playwright: str
    """Version of Playwright Test."""
    compile_cache: Path | None
    """For `NODE_COMPILE_CACHE`, read-only. None: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtimes:
    """Those of this machine, as found when the process started."""

    by_id: Mapping[str, Runtime] = field(default_factory=lambda: MappingProxyType({}))
    """The newest first."""
    browser: Path | None = None
    """Program of Chromium's headless shell. None: there is none."""
    ffmpeg: Path | None = None
    """Records videos of pages. None: there is none."""

    @property
    def installed(self) -> tuple[str, ...]:
        """Their ids, the newest first."""
        return tuple(self.by_id)

    def get(self, runtime_id: str | None) -> Runtime:
        """The runtime of that id; the newest, when the check names none.

        Raises:
            MissingRuntimeError: it is not installed.
        """
        wanted = runtime_id or next(iter(self.by_id), "")
        found = self.by_id.get(wanted)
        if found is None:
            here = ", ".join(self.by_id) or "none"
            raise MissingRuntimeError(
                f"Runtime {wanted or 'for scripts'} is not installed; this machine has {here}."
            )
        return found


def find_runtimes(folder: Path | None = None, browser: Path | None = None) -> Runtimes:
    """Look at this machine; reads a few small files.

    `folder`: where runtimes are. None: where the installation puts them. `browser`: Chromium's
    program. None: where distributions put it.
    """
    places = _default_folders() if folder is None else (folder,)
    found = [runtime for place in places for runtime in _runtimes_in(place)]
    newest_first = sorted(found, key=lambda runtime: runtime.id, reverse=True)
    return Runtimes(
        by_id=MappingProxyType({runtime.id: runtime for runtime in newest_first}),
        browser=_first_program(_BROWSERS if browser is None else (str(browser),)),
        ffmpeg=_first_program((_FFMPEG,)),
    )


def _default_folders() -> tuple[Path, ...]:
    """That of an image, and that of a working copy, which stands beside its environment."""
    environment = Path(sys.prefix)
    return (environment.parent / ".tools/runtimes", environment / "runtimes")


def _runtimes_in(folder: Path) -> list[Runtime]:
    if not folder.is_dir():
        return []
    return [_runtime(one) for one in folder.iterdir() if (one / _READY).is_file()]


def _runtime(folder: Path) -> Runtime:
    modules, cache = folder / "node_modules", folder / "compile-cache"
    package = json.loads((modules / "@playwright/test/package.json").read_bytes())
    return Runtime(
        id=folder.name,
        node=folder / "bin/node",
        modules=modules,
        playwright=package["version"],
        compile_cache=cache if cache.is_dir() else None,
    )


def _first_program(paths: tuple[str, ...]) -> Path | None:
    """Whichever of them there is and may be started."""
    return next((Path(path) for path in paths if os.access(path, os.X_OK)), None)
