"""The command line and the environment by which a script comes to run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from contract.scripted import BrowserSpec, MultiStepSpec
from runners.kit.isolation.program import Limits, Program
from runners.kit.playwright.ground import BROWSER_ARGUMENTS
from runners.kit.playwright.place import Place, grounds, node_line
from runners.kit.scripts.files import script_path
from runners.kit.scripts.kind import is_playwright_test
from runners.kit.scripts.runtimes import Runtime


class Script(msgspec.Struct, frozen=True):
    """A script, and what it runs on."""

    spec: BrowserSpec | MultiStepSpec
    runtime: Runtime
    browser: Path | None
    """Chromium's program. None: it may start no browser."""
    ffmpeg: Path | None
    """None: there are no videos."""
    config: Mapping[str, object]
    """The allowed parts of a configuration of its own."""

    @property
    def films(self) -> bool:
        """Whether there are videos of it."""
        return self.browser is not None and self.ffmpeg is not None


def program_of(
    script: Script,
    place: Place,
    *,
    environment: Mapping[str, str],
    settings: Mapping[str, object],
    limits: Limits,
) -> Program:
    """What runs a script that lies at its place.

    `environment`: of its check and of this machine. `settings`: further ones for settings.cjs.
    """
    return Program(
        argv=(*node_line(script.runtime), *_command(script)),
        folder=place.root,
        env={
            **environment,
            **grounds(script.runtime, place),
            "PICKET_HARNESS": json.dumps({**_settings(script, place), **settings}),
        },
        limits=limits,
    )


def _command(script: Script) -> tuple[str, ...]:
    path, harness = script_path(script.spec), script.runtime.harness / "playwright"
    if not is_playwright_test(script.spec.script, str(path)):
        return (str(harness / "plain.cjs"),)
    runner = script.runtime.modules / "@playwright" / "test" / "cli.js"
    return (str(runner), "test", "--config", str(harness / "config.cjs"))


def _settings(script: Script, place: Place) -> dict[str, Any]:
    """What settings.cjs reads."""
    vitals = script.runtime.modules / "web-vitals" / "dist" / "web-vitals.iife.js"
    return {
        "root": str(place.root),
        "script": str(place.root / script_path(script.spec)),
        "nameless": script.spec.script_path is None,
        "output": str(place.output),
        "browser": None if script.browser is None else str(script.browser),
        "browserArguments": BROWSER_ARGUMENTS,
        "vitals": str(vitals) if vitals.is_file() else None,
        "video": script.films,
        "playwrightConfig": script.config,
    }
