"""Runs one script in Playwright."""

import asyncio
import contextlib
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from contract.checks import BrowserSpec, MultiStepSpec
from contract.result import Artifact, CheckFailed, FailureKind, LogLine
from contract.scripts import config_problem
from redaction.policy import secret_names, secrets_in
from runners.runner import RunContext
from runners.scripting.harness import Harness
from runners.scripting.node.files import (
    ScriptFile,
    UserPaths,
    is_playwright_test,
    script_files,
    script_path,
)
from runners.scripting.node.runtimes import Runtime
from runners.scripting.playwright.chromium import (
    BROWSER_ARGUMENTS,
    Proof,
    harmless_variables,
    is_our_fault,
    make_registry,
)
from runners.scripting.playwright.outputs import FileNames, Left, collect_outputs
from runners.scripting.playwright.place import Place, grounds, lay_out, make_place, node_line
from runners.scripting.playwright.reporter import ReporterEvents
from runners.scripting.playwright.secret_messages import SecretMessages
from runners.scripting.playwright.warm_pool import (
    Spare,
    SpareUnfitError,
    run_to_completion,
    starts_alone,
)
from runners.scripting.proxy.egress_proxy import Unreached
from runners.scripting.proxy.run_proxy import RunGate, proxies, run_gate
from runners.scripting.trust.roots import Roots
from sandbox.program import Ended, Limits, Program, RunTime, Until, split
from sandbox.workspace import Workspace


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


BROWSER_MB: Final = 1500
MULTI_STEP_MB: Final = 1000
_LONGEST_SETTINGS: Final = 100_000
"""A text of the environment can hold no more than 128 KiB."""
_MOST_RESERVED_S: Final = 8.0
"""Of a run's time, for its end: its trace and its video are written, and read by us."""


class ScriptRun(msgspec.Struct, frozen=True, kw_only=True):
    """A script that was run, whatever came of it."""

    book: ReporterEvents
    ended: Ended
    runtime_id: str
    start_ms: float
    """When it was started, by the calendar."""
    limit_s: float
    """Of its time, as it was set up."""
    memory_mb: int
    degraded_because: str | None
    """What the script said in `degraded.json`. None: nothing."""
    artifacts: tuple[Artifact, ...]
    notes: tuple[LogLine, ...]
    """What the reader of its log has to know beside it, from when on that was known."""
    unreached: tuple[Unreached, ...]
    """What the browser or a request wanted to reach through the gate, and did not."""


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
    order, started = _order(spec, ctx, browser), time.monotonic()
    runtime, limits, alone = order.script.runtime, order.limits, order.starts_alone
    async with order.harness.playwrights.lent(runtime, limits, alone=alone) as spare:
        if spare is not None:
            with contextlib.suppress(SpareUnfitError):
                return await order.run(spare)
            order = order.later(time.monotonic() - started)
        return await order.run(None)


def _order(spec: BrowserSpec | MultiStepSpec, ctx: RunContext, browser: Path | None) -> "_Order":
    harness = ctx.network.scripts()
    runtime = harness.runtimes.get(spec.runtime_id)
    config = _allowed(spec.playwright_config)
    return _Order(
        ctx=ctx,
        harness=harness,
        script=Script(spec, runtime, browser, harness.runtimes.ffmpeg, config),
        files=script_files(spec),
        time=split(ctx.told_limit_s, within_s=ctx.timeout_s, most_reserved_s=_MOST_RESERVED_S),
        until=Until.after(ctx.timeout_s),
    )


class _Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run, wherever that will be."""

    ctx: RunContext
    harness: Harness
    script: Script
    files: tuple[ScriptFile, ...]
    time: RunTime
    until: Until
    """Then all has to be over, what is kept of it included."""

    @property
    def limits(self) -> Limits:
        """Those of its program."""
        return Limits(memory_mb=MULTI_STEP_MB if self.script.browser is None else BROWSER_MB)

    @property
    def variables(self) -> dict[str, str]:
        """What the script is told of its run and its check."""
        told = {one.key: one.value for one in self.ctx.variables}
        ctx = self.ctx
        return harmless_variables({**ctx.location_secrets, **ctx.environment, **told})

    @property
    def starts_alone(self) -> bool:
        """Whether no process that waits can run it."""
        return bool(self.ctx.client_certificates) or starts_alone(self.variables)

    def later(self, used_s: float) -> Self:
        """The same with the time that is left."""
        return msgspec.structs.replace(self, time=self.time.later(used_s))

    async def run(self, spare: Spare | None) -> ScriptRun:
        """Run it in a process that waited, or in a new one.

        Raises:
            SpareUnfitError: nothing has run.
        """
        workspace = self.ctx.workspace if spare is None else spare.workspace
        place = await run_to_completion(self._laid_out, workspace)
        presents = bool(self.ctx.client_certificates)
        roots = await asyncio.to_thread(self.harness.trust.roots, presents=presents)
        distrust = None
        if self.script.browser is not None:
            distrust = await run_to_completion(roots.equip, place.home)
        run = _Run(
            order=self,
            spare=spare,
            workspace=workspace,
            place=place,
            roots=roots,
            distrust=distrust,
        )
        return await run.through()

    def _laid_out(self, workspace: Workspace) -> Place:
        place = make_place(workspace.folder)
        lay_out(place, self.files, self.script.runtime)
        if self.script.films:
            make_registry(place.browsers, place.root, browser=None, ffmpeg=self.script.ffmpeg)
        return place


class _Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run about to be started."""

    order: _Order
    spare: Spare | None
    """Whose process is to run it. None: a new one."""
    workspace: Workspace
    """Where it works."""
    place: Place
    roots: Roots
    distrust: str | None
    """Why the browser does not trust the location's further roots. None: it does."""

    async def through(self) -> ScriptRun:
        """Start it, wait for its end, collect what it left."""
        runtime = self.order.script.runtime
        packages, harness = (runtime.modules.parent,), runtime.harness
        book = ReporterEvents(UserPaths(self.place.root, packages=packages, harness=harness))
        start_ms, ctx = time.time() * 1000, self.order.ctx
        async with run_gate(ctx, self.roots, self.place.home) as gate:
            program = self._program(gate)
            ended = await self._played(program, book)
        if ended.facts_cut:
            ctx.workspace.miss_facts()
        await self._judge_launch(book)
        unreached = () if gate is None else gate.unreached
        left = await run_to_completion(self._left, book.has_all_files)
        return ScriptRun(
            book=book,
            ended=ended,
            runtime_id=self.order.script.runtime.id,
            start_ms=start_ms,
            limit_s=self.order.time.limit_s,
            memory_mb=program.limits.memory_mb,
            degraded_because=left.degraded_because,
            artifacts=left.artifacts,
            notes=self._notes((*_noticed(book, ended, gate), *left.notes), at_s=ended.took_s),
            unreached=unreached,
        )

    async def _judge_launch(self, book: ReporterEvents) -> None:
        """Forget a launch that failed by the script's own doing."""
        order, browser = self.order, self.order.script.browser
        if book.lost_launch is None or browser is None:
            return
        proof = Proof(
            sandbox=order.harness.sandbox,
            browser=browser,
            environment=lambda home: order.harness.environment(order.script.runtime, home),
        )
        within_s = order.until.half().left_s
        if not await is_our_fault(book.lost_launch, proof, within_s=within_s):
            book.launches.forgive()

    async def _played(self, program: Program, book: ReporterEvents) -> Ended:
        ctx = self.order.ctx
        ctx.workspace.show(secrets_in(program.env, secret_names(ctx.variables)))
        hears = SecretMessages(ctx.workspace, others=book)
        if self.spare is not None:
            return await self.spare.play(program, time_of_run=self.order.time, hears=hears)
        child = await self.order.harness.sandbox.start(program, owner=self.workspace)
        return await child.ended(
            timeout_s=self.order.time.stop_after_s,
            grace_s=self.order.time.grace_s,
            on_fact=hears.take,
            on_stop=hears.stop,
        )

    def _program(self, gate: RunGate | None) -> Program:
        order, ctx = self.order, self.order.ctx
        return program_of(
            order.script,
            self.place,
            environment={
                **order.harness.environment(order.script.runtime, self.place.home),
                **order.variables,
                **self.roots.environment,
            },
            settings={
                "artifacts": "on" if ctx.keeps_files else "retain-on-failure",
                "secretNames": secret_names(ctx.variables),
                **proxies(gate),
            },
            limits=order.limits,
        )

    def _left(self, is_ended: bool) -> Left:  # noqa: FBT001 - called by position, in a thread
        ctx = self.order.ctx
        return collect_outputs(
            self.place,
            self.workspace,
            keeper=ctx.workspace,
            is_ended=is_ended,
            films=self.order.script.films,
            until=self.order.until,
            names=FileNames.of(ctx),
        )

    def _notes(self, after: Iterable[str], *, at_s: float) -> tuple[LogLine, ...]:
        return (*_lines(self._known_before(), at_s=0), *_lines(after, at_s=at_s))

    def _known_before(self) -> list[str]:
        notes = [] if self.distrust is None else [self.distrust]
        if self.order.script.browser is not None and not self.order.script.films:
            notes.append("There is no video: this location has no ffmpeg.")
        return notes


def _noticed(book: ReporterEvents, ended: Ended, gate: RunGate | None) -> list[str]:
    notes = [] if gate is None else list(gate.notes)
    if book.dropped or ended.facts_cut:
        notes.append("Not all of what the run told was kept: it was too much, or in no order.")
    return notes


def _lines(notes: Iterable[str], *, at_s: float) -> tuple[LogLine, ...]:
    at_ms = round(at_s * 1000, 1)
    return tuple(LogLine(after_ms=at_ms, level="WARN", message=note) for note in notes)


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
