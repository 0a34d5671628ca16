"""Runs the script of a BROWSER or MULTI_STEP check in the sandbox, and collects what it tells."""

import asyncio
import json
import re
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec

from contract.playwright_config import config_problem
from contract.result import Artifact, FailureKind
from contract.scripted import BrowserSpec, MultiStepSpec
from runners.kit.browser_registry import make_registry
from runners.kit.failures import CheckFailed
from runners.kit.harness import Harness
from runners.kit.playwright_facts import FactBook
from runners.kit.playwright_files import degraded_because, keep_files
from runners.kit.program import Ended, Limits, Program
from runners.kit.run_gate import RunGate, proxies, run_gate
from runners.kit.runner import RunContext
from runners.kit.runtimes import MissingRuntimeError, Runtime
from runners.kit.script_files import ScriptFile, script_files, script_path, write_files
from runners.kit.script_kind import is_playwright_test
from runners.kit.trust import Roots

HARNESS: Final = Path(__file__).parents[1] / "harness" / "playwright"
BROWSER_MB: Final = 1500
MULTI_STEP_MB: Final = 1000
BROWSER_ARGUMENTS: Final = (
    "--disable-gpu",
    "--disable-quic",
    "--disable-component-update",
    "--disable-sync",
)
_NODE_ARGUMENTS: Final = (
    # Reading TypeScript and guessing what kind of module a file is are meant here.
    "--disable-warning=ExperimentalWarning",
    "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON",
)
_NAME: Final = re.compile(r"[^=\0]+")
_RESERVED: Final = re.compile(
    r"(NODE|LD|PW|PWTEST|PLAYWRIGHT|PICKET)_.*|PATH|HOME|TMPDIR|TMP|TEMP|SHELL|CI|SERVICE"
)
"""Names of the environment that lead Node, Playwright or us; a variable of a check cannot."""
_LONGEST_SETTINGS: Final = 100_000
"""A text of the environment can hold no more than 128 KiB."""
_KILL_S: Final = 2.0
"""What the sandbox gives a run to end politely; it must fit within the run's time."""


class ScriptRun(msgspec.Struct, frozen=True, kw_only=True):
    """A script that was run, whatever came of it."""

    book: FactBook
    ended: Ended
    runtime_id: str
    start_ms: float
    """When it was started, by the calendar."""
    timeout_s: float
    memory_mb: int
    degraded_because: str | None
    """What the script said in `degraded.json`. None: nothing."""
    artifacts: tuple[Artifact, ...]
    notes: tuple[str, ...]
    """What the reader of its log has to know beside it."""
    refusals: tuple[str, ...]
    """Why the egress rules refused what the browser or a request wanted."""


class _Place(msgspec.Struct, frozen=True):
    """The folders of one run."""

    root: Path
    """The check's own files; the working directory."""
    output: Path
    """What Playwright writes; it removes this folder and makes it anew, so the one above is the
    run's too."""
    home: Path
    browsers: Path
    """Where Playwright looks for its encoder of videos."""


async def run_script(
    spec: BrowserSpec | MultiStepSpec, ctx: RunContext, *, browser: Path | None
) -> ScriptRun:
    """Run it once; when this returns, nothing of it runs any more.

    `browser`: Chromium's program. None: the script may start no browser.

    Raises:
        CheckFailed: of kind SCRIPT, when the check cannot be run as it is written.
        MissingRuntimeError: this machine lacks what it runs on.
        OSError: our fault.
    """
    harness = ctx.network.scripts()
    runtime = harness.runtimes.get(spec.runtime_id)
    files = script_files(spec)
    config = _allowed(spec.playwright_config)
    place = await asyncio.to_thread(_lay_out, ctx.workspace.folder, files, runtime)
    ffmpeg = harness.runtimes.ffmpeg
    if browser is not None and ffmpeg is not None:
        registry = partial(make_registry, place.browsers, place.root, browser=None, ffmpeg=ffmpeg)
        await asyncio.to_thread(registry)
    presents = bool(ctx.client_certificates)
    roots = await asyncio.to_thread(harness.trust.roots, presents=presents)
    distrust = None
    if browser is not None:
        distrust = await asyncio.to_thread(roots.equip, place.home)
    run = _Run(
        spec=spec,
        ctx=ctx,
        harness=harness,
        runtime=runtime,
        place=place,
        browser=browser,
        roots=roots,
        distrust=distrust,
    )
    return await run.through(config)


def required_browser(harness: Harness) -> Path:
    """Chromium's program.

    Raises:
        MissingRuntimeError: there is none.
    """
    if harness.runtimes.browser is None:
        raise MissingRuntimeError("There is no Chromium on this machine.")
    return harness.runtimes.browser


class _Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run about to be started."""

    spec: BrowserSpec | MultiStepSpec
    ctx: RunContext
    harness: Harness
    runtime: Runtime
    place: _Place
    browser: Path | None
    roots: Roots
    distrust: str | None
    """Why the browser does not trust the location's further roots. None: it does."""

    async def through(self, config: Mapping[str, object]) -> ScriptRun:
        """Start it, wait for its end, collect what it left."""
        book, start_ms = FactBook(), time.time() * 1000
        timeout_s = max(self.ctx.timeout_s - _KILL_S, self.ctx.timeout_s * 0.8)
        async with run_gate(self.ctx, self.roots, self.place.home) as gate:
            program = self._program(config, timeout_s, gate)
            child = await self.harness.sandbox.start(program, owner=self.ctx.workspace)
            ended = await child.ended(timeout_s=timeout_s, on_fact=book.take)
        refusals = () if gate is None else gate.refusals
        degraded, artifacts = await asyncio.to_thread(self._left)
        return ScriptRun(
            book=book,
            ended=ended,
            runtime_id=self.runtime.id,
            start_ms=start_ms,
            timeout_s=timeout_s,
            memory_mb=program.limits.memory_mb,
            degraded_because=degraded,
            artifacts=artifacts,
            notes=(*refusals, *self._notes(book, ended, gate)),
            refusals=refusals,
        )

    def _program(
        self, config: Mapping[str, object], timeout_s: float, gate: RunGate | None
    ) -> Program:
        memory_mb = MULTI_STEP_MB if self.browser is None else BROWSER_MB
        path = script_path(self.spec)
        return Program(
            argv=(str(self.runtime.node), *_NODE_ARGUMENTS, *self._command(path)),
            folder=self.place.root,
            env=self._environment(
                {
                    **self._settings(path, config, timeout_s),
                    **proxies(gate, self.ctx.proxy_url),
                }
            ),
            limits=Limits(memory_mb=memory_mb),
        )

    def _command(self, path: PurePosixPath) -> tuple[str, ...]:
        preload = ("--require", str(HARNESS / "preload.cjs"))
        if not is_playwright_test(self.spec.script, str(path)):
            return (*preload, str(HARNESS / "plain.cjs"))
        runner = self.runtime.modules / "@playwright" / "test" / "cli.js"
        return (*preload, str(runner), "test", "--config", str(HARNESS / "config.cjs"))

    def _settings(
        self, path: PurePosixPath, config: Mapping[str, object], timeout_s: float
    ) -> dict[str, Any]:
        """What settings.cjs reads."""
        vitals = self.runtime.modules / "web-vitals" / "dist" / "web-vitals.iife.js"
        return {
            "root": str(self.place.root),
            "script": str(self.place.root / path),
            "output": str(self.place.output),
            "browser": None if self.browser is None else str(self.browser),
            "browserArguments": BROWSER_ARGUMENTS,
            "vitals": str(vitals) if vitals.is_file() else None,
            "artifacts": "on" if self.ctx.keeps_files else "retain-on-failure",
            "video": self._films,
            "timeoutMs": round(timeout_s * 1000),
            "playwrightConfig": config,
        }

    def _environment(self, settings: Mapping[str, Any]) -> dict[str, str]:
        told = {one.key: one.value for one in self.ctx.variables}
        cache = self.runtime.compile_cache
        return {
            **harmless_variables({**self.ctx.environment, **told}),
            **self.harness.environment(self.runtime, self.place.home),
            **self.roots.environment,
            **({} if cache is None else {"NODE_COMPILE_CACHE": str(cache)}),
            "PLAYWRIGHT_BROWSERS_PATH": str(self.place.browsers),
            "PICKET_FACTS_FD": "3",
            "PICKET_HARNESS": json.dumps(settings),
        }

    @property
    def _films(self) -> bool:
        return self.browser is not None and self.harness.runtimes.ffmpeg is not None

    def _left(self) -> tuple[str | None, tuple[Artifact, ...]]:
        """What the script said of itself, and the files to keep."""
        root = self.place.root
        degraded = degraded_because(root) if self.ctx.workspace.holds(root) else None
        return degraded, keep_files(self.ctx.workspace, self.place.output, root)

    def _notes(self, book: FactBook, ended: Ended, gate: RunGate | None) -> list[str]:
        notes = [] if self.distrust is None else [self.distrust]
        notes += () if gate is None else gate.notes
        if self.browser is not None and not self._films:
            notes.append("There is no video: this location has no ffmpeg.")
        if book.dropped or ended.facts_cut:
            notes.append("Not all of what the run told was kept: it was too much, or in no order.")
        return notes


def _lay_out(folder: Path, files: tuple[ScriptFile, ...], runtime: Runtime) -> _Place:
    place = _Place(
        root=folder / "check",
        output=folder / "output" / "files",
        home=folder / "home",
        browsers=folder / "browsers",
    )
    for one in (place.root, place.output, place.home, place.browsers):
        one.mkdir(parents=True)
    write_files(files, place.root)
    (place.root / "node_modules").symlink_to(runtime.modules)
    return place


def _allowed(config: Mapping[str, object] | None) -> Mapping[str, object]:
    if config is None:
        return {}
    wrong = config_problem(config)
    if wrong is None and len(json.dumps(config)) > _LONGEST_SETTINGS:
        wrong = ("", f"is longer than {_LONGEST_SETTINGS} characters")
    if wrong is None:
        return config
    path, problem = wrong
    field = f"playwrightConfig.{path}" if path else "playwrightConfig"
    raise CheckFailed(FailureKind.SCRIPT, f"{field} {problem}.", {"code": "PLAYWRIGHT_CONFIG"})


def harmless_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that do not lead Node, Playwright or us."""
    return {
        name: value
        for name, value in variables.items()
        if _NAME.fullmatch(name) and not _RESERVED.fullmatch(name) and "\0" not in value
    }
