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
from contract.evidence import SnapshotSeen
from contract.result import Artifact, CheckFailed, FailureKind, LogLine
from contract.scripts import config_problem
from redaction.policy import environment_secrets, secret_names
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
    LaunchTest,
    filter_variables,
    is_our_fault,
    make_registry,
)
from runners.scripting.playwright.outputs import CollectedOutputs, FileNames, collect_outputs
from runners.scripting.playwright.place import (
    RunFolders,
    build_load_environment,
    build_node_command,
    make_folders,
    place_files,
)
from runners.scripting.playwright.reporter import ReporterEvents
from runners.scripting.playwright.secret_messages import SecretMessages
from runners.scripting.playwright.snapshots import (
    NewSnapshots,
    PlacedSnapshot,
    fetch_snapshots,
    place_snapshots,
    take_snapshots,
)
from runners.scripting.playwright.warm_pool import (
    UnfitProcessError,
    WarmProcess,
    needs_fresh_process,
    run_to_completion,
)
from runners.scripting.proxy.egress_proxy import UnreachedTarget
from runners.scripting.proxy.run_proxy import RunProxy, build_proxy_settings, open_run_proxy
from runners.scripting.trust.roots import Roots
from sandbox.program import Deadline, Limits, Program, ProgramExit, RunTime, split_time
from sandbox.workspace import Workspace


class Script(msgspec.Struct, frozen=True):
    """A script and what it runs on."""

    spec: BrowserSpec | MultiStepSpec
    runtime: Runtime
    browser: Path | None
    """The path of Chromium. None: the script may start no browser."""
    ffmpeg: Path | None
    """The program that records videos. None: there are no videos."""
    config: Mapping[str, object]
    """The allowed parts of the check's own Playwright configuration."""

    @property
    def records_video(self) -> bool:
        """Whether its pages are recorded as videos."""
        return self.browser is not None and self.ffmpeg is not None


def build_program(
    script: Script,
    place: RunFolders,
    *,
    environment: Mapping[str, str],
    settings: Mapping[str, object],
    limits: Limits,
) -> Program:
    """Build the program that runs a script whose files are in place.

    `environment`: the variables of the check and of this machine. `settings`: added to what
    settings.cjs reads.
    """
    return Program(
        argv=(*build_node_command(script.runtime), *_build_command(script)),
        folder=place.root,
        env={
            **environment,
            **build_load_environment(script.runtime, place),
            "PICKET_HARNESS": json.dumps({**_build_settings(script, place), **settings}),
        },
        limits=limits,
    )


def _build_command(script: Script) -> tuple[str, ...]:
    path, harness = script_path(script.spec), script.runtime.harness / "playwright"
    if not is_playwright_test(script.spec.script, str(path)):
        return (str(harness / "plain.cjs"),)
    runner = script.runtime.modules / "@playwright" / "test" / "cli.js"
    return (str(runner), "test", "--config", str(harness / "config.cjs"))


def _build_settings(script: Script, place: RunFolders) -> dict[str, Any]:
    """Build the settings that settings.cjs reads."""
    vitals = script.runtime.modules / "web-vitals" / "dist" / "web-vitals.iife.js"
    return {
        "root": str(place.root),
        "script": str(place.root / script_path(script.spec)),
        "nameless": script.spec.script_path is None,
        "output": str(place.output),
        "browser": None if script.browser is None else str(script.browser),
        "browserArguments": BROWSER_ARGUMENTS,
        "vitals": str(vitals) if vitals.is_file() else None,
        "video": script.records_video,
        "playwrightConfig": script.config,
    }


BROWSER_MB: Final = 1500
MULTI_STEP_MB: Final = 1000
_LONGEST_SETTINGS: Final = 100_000
"""One variable of the environment can hold 128 KiB at most."""
_MOST_RESERVED_S: Final = 8.0
"""The most time that is reserved for finishing a run's trace and video, and reading them."""


class ScriptRun(msgspec.Struct, frozen=True, kw_only=True):
    """A script that has run, whatever its outcome."""

    events: ReporterEvents
    ended: ProgramExit
    runtime_id: str
    start_ms: float
    """When it was started, in ms since the epoch."""
    limit_s: float
    """The time limit as the check sets it."""
    memory_mb: int
    degraded_because: str | None
    """The messages of the script's `degraded.json`. None: it wrote none."""
    artifacts: tuple[Artifact, ...]
    notes: tuple[LogLine, ...]
    """Lines of the agent for the run's log."""
    unreached: tuple[UnreachedTarget, ...]
    """The targets that the browser or a request could not reach through the proxy."""
    snapshots: tuple[SnapshotSeen, ...]
    """What it wrote anew, where that was asked for."""


async def run_script(
    spec: BrowserSpec | MultiStepSpec, ctx: RunContext, *, browser: Path | None
) -> ScriptRun:
    """Run a script once; when this returns, none of its processes is left.

    `browser`: the path of Chromium. None: the script may start no browser.

    Raises:
        CheckFailed: of kind SCRIPT: the check cannot be run as it is written.
        MissingRuntimeError: this machine lacks what it runs on.
        BundleError: a snapshot is not available now.
        OSError: our fault.
    """
    snapshots = await fetch_snapshots(spec, ctx.network.scripts())
    prepared, started = _prepare(spec, ctx, browser, snapshots), time.monotonic()
    runtime, limits, alone = prepared.script.runtime, prepared.limits, prepared.needs_fresh_process
    async with prepared.harness.warm_pool.lend(runtime, limits, alone=alone) as spare:
        if spare is not None:
            with contextlib.suppress(UnfitProcessError):
                return await prepared.run(spare)
            prepared = prepared.minus(time.monotonic() - started)
        return await prepared.run(None)


def _prepare(
    spec: BrowserSpec | MultiStepSpec,
    ctx: RunContext,
    browser: Path | None,
    snapshots: tuple[PlacedSnapshot, ...],
) -> "_PreparedRun":
    harness = ctx.network.scripts()
    runtime = harness.runtimes.get(spec.runtime_id)
    config = _require_allowed(spec.playwright_config)
    return _PreparedRun(
        ctx=ctx,
        harness=harness,
        script=Script(spec, runtime, browser, harness.runtimes.ffmpeg, config),
        files=script_files(spec),
        snapshots=snapshots,
        time=split_time(
            ctx.stated_limit_s, within_s=ctx.timeout_s, most_reserved_s=_MOST_RESERVED_S
        ),
        until=Deadline.after(ctx.timeout_s),
    )


class _PreparedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run whose inputs are checked, before it has a process."""

    ctx: RunContext
    harness: Harness
    script: Script
    files: tuple[ScriptFile, ...]
    snapshots: tuple[PlacedSnapshot, ...]
    time: RunTime
    until: Deadline
    """When the run has to be over, including the reading of its files."""

    @property
    def limits(self) -> Limits:
        """The limits of its program."""
        return Limits(memory_mb=MULTI_STEP_MB if self.script.browser is None else BROWSER_MB)

    @property
    def variables(self) -> dict[str, str]:
        """The variables of the run, the location and the check."""
        told = {one.key: one.value for one in self.ctx.variables}
        ctx = self.ctx
        return filter_variables({**ctx.location_secrets, **ctx.environment, **told})

    @property
    def updates_snapshots(self) -> bool:
        """Whether it writes snapshots anew."""
        spec = self.script.spec
        return isinstance(spec, BrowserSpec) and spec.update_snapshots

    @property
    def needs_fresh_process(self) -> bool:
        """Whether no warm process can run it."""
        return bool(self.ctx.client_certificates) or needs_fresh_process(self.variables)

    def minus(self, used_s: float) -> Self:
        """Make a copy with less time left."""
        return msgspec.structs.replace(self, time=self.time.minus(used_s))

    async def run(self, spare: WarmProcess | None) -> ScriptRun:
        """Run it in a warm process, or in a new one.

        Raises:
            UnfitProcessError: nothing has run.
        """
        workspace = self.ctx.workspace if spare is None else spare.workspace
        place = await run_to_completion(self._make_folders, workspace)
        presents = bool(self.ctx.client_certificates)
        roots = await asyncio.to_thread(self.harness.trust.roots, presents=presents)
        distrust = None
        if self.script.browser is not None:
            distrust = await run_to_completion(roots.install_in, place.home)
        run = _Run(
            prepared=self,
            spare=spare,
            workspace=workspace,
            place=place,
            roots=roots,
            distrust=distrust,
        )
        return await run.execute()

    def _make_folders(self, workspace: Workspace) -> RunFolders:
        place = make_folders(workspace.folder)
        place_files(place, self.files, self.script.runtime)
        place_snapshots(place.root, self.snapshots)
        if self.script.records_video:
            make_registry(place.browsers, place.root, browser=None, ffmpeg=self.script.ffmpeg)
        return place


class _Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is about to start in a process."""

    prepared: _PreparedRun
    spare: WarmProcess | None
    """The warm process that runs it. None: a new process does."""
    workspace: Workspace
    """The workspace with its folders."""
    place: RunFolders
    roots: Roots
    distrust: str | None
    """Why the browser does not trust the location's further roots. None: it trusts them."""

    async def execute(self) -> ScriptRun:
        """Start it, wait for its end, and collect its files."""
        runtime = self.prepared.script.runtime
        packages, harness = (runtime.modules.parent,), runtime.harness
        events = ReporterEvents(UserPaths(self.place.root, packages=packages, harness=harness))
        start_ms, ctx = time.time() * 1000, self.prepared.ctx
        async with open_run_proxy(ctx, self.roots, self.place.home) as proxy:
            program = self._build_program(proxy)
            ended = await self._run_program(program, events)
        if ended.facts_cut:
            ctx.workspace.mark_facts_lost()
        await self._clear_own_launch(events)
        unreached = () if proxy is None else proxy.unreached
        written = await run_to_completion(self._take_snapshots)
        left = await run_to_completion(self._collect, events)
        return ScriptRun(
            events=events,
            ended=ended,
            runtime_id=self.prepared.script.runtime.id,
            start_ms=start_ms,
            limit_s=self.prepared.time.limit_s,
            memory_mb=program.limits.memory_mb,
            degraded_because=left.degraded_because,
            artifacts=(*written.artifacts, *left.artifacts),
            notes=self._notes((*_list_notes(events, ended, proxy), *left.notes), at_s=ended.took_s),
            unreached=unreached,
            snapshots=written.seen,
        )

    async def _clear_own_launch(self, events: ReporterEvents) -> None:
        """Clear a failed launch of a browser if the script itself caused the failure."""
        prepared, browser = self.prepared, self.prepared.script.browser
        if events.lost_launch is None or browser is None:
            return
        proof = LaunchTest(
            sandbox=prepared.harness.sandbox,
            browser=browser,
            environment=lambda home: prepared.harness.environment(prepared.script.runtime, home),
        )
        within_s = prepared.until.halve().remaining_s
        if not await is_our_fault(events.lost_launch, proof, within_s=within_s):
            events.launches.clear()

    async def _run_program(self, program: Program, events: ReporterEvents) -> ProgramExit:
        ctx = self.prepared.ctx
        ctx.workspace.set_script_secrets(
            environment_secrets(program.env, secret_names(ctx.variables))
        )
        messages = SecretMessages(ctx.workspace, receiver=events)
        if self.spare is not None:
            return await self.spare.run(program, run_time=self.prepared.time, messages=messages)
        child = await self.prepared.harness.sandbox.start(program, owner=self.workspace)
        return await child.wait(
            timeout_s=self.prepared.time.stop_after_s,
            grace_s=self.prepared.time.grace_s,
            on_fact=messages.take,
            on_stop=messages.stop,
        )

    def _build_program(self, proxy: RunProxy | None) -> Program:
        prepared, ctx = self.prepared, self.prepared.ctx
        return build_program(
            prepared.script,
            self.place,
            environment={
                **prepared.harness.environment(prepared.script.runtime, self.place.home),
                **prepared.variables,
                **self.roots.environment,
            },
            settings={
                "artifacts": "on" if ctx.keeps_files else "retain-on-failure",
                "updateSnapshots": "changed" if prepared.updates_snapshots else "none",
                "secretNames": secret_names(ctx.variables),
                **build_proxy_settings(proxy),
            },
            limits=prepared.limits,
        )

    def _take_snapshots(self) -> NewSnapshots:
        prepared = self.prepared
        return take_snapshots(
            self.workspace,
            self.place.root,
            prepared.snapshots,
            into=prepared.ctx.workspace,
            are_updated=prepared.updates_snapshots,
        )

    def _collect(self, events: ReporterEvents) -> CollectedOutputs:
        ctx = self.prepared.ctx
        folders = (test.folder for test in events.failed_tests)
        return collect_outputs(
            self.place,
            self.workspace,
            kept_in=ctx.workspace,
            is_ended=events.has_all_files,
            records_video=self.prepared.script.records_video,
            until=self.prepared.until,
            names=FileNames.of(ctx),
            failed=tuple(folder for folder in folders if folder is not None),
        )

    def _notes(self, after: Iterable[str], *, at_s: float) -> tuple[LogLine, ...]:
        return (
            *_build_log_lines(self._list_notes_before(), at_s=0),
            *_build_log_lines(after, at_s=at_s),
        )

    def _list_notes_before(self) -> list[str]:
        notes = [] if self.distrust is None else [self.distrust]
        if self.prepared.script.browser is not None and not self.prepared.script.records_video:
            notes.append("There is no video: this location has no ffmpeg.")
        return notes


def _list_notes(events: ReporterEvents, ended: ProgramExit, proxy: RunProxy | None) -> list[str]:
    notes = [] if proxy is None else list(proxy.notes)
    if events.dropped or ended.facts_cut:
        notes.append("Not all that the run reported was kept: it was too much, or malformed.")
    return notes


def _build_log_lines(notes: Iterable[str], *, at_s: float) -> tuple[LogLine, ...]:
    at_ms = round(at_s * 1000, 1)
    return tuple(LogLine(after_ms=at_ms, level="WARN", message=note) for note in notes)


def _require_allowed(config: Mapping[str, object] | None) -> Mapping[str, object]:
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
