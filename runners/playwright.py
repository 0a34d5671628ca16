"""Playwright check suites: a whole project of tests, with its own configuration and packages."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contract.checks import PlaywrightSpec
from contract.evidence import PlaywrightEvidence
from contract.result import Artifact, CheckFailed, Failure, LogLine, Timings
from redaction.policy import secret_names
from runners.runner import Observation, RunContext
from runners.scripting.harness import Harness
from runners.scripting.playwright.chromium import (
    BROWSER_ARGUMENTS,
    LaunchTest,
    filter_variables,
    is_our_fault,
    require_browser,
)
from runners.scripting.playwright.outputs import FileNames
from runners.scripting.playwright.reporter import LostLaunch
from runners.scripting.proxy.run_proxy import RunProxy, build_proxy_settings, open_run_proxy
from runners.scripting.suites.artifacts import (
    collect_attachments,
    collect_reports,
    write_report,
)
from runners.scripting.suites.install import (
    LIMIT_S,
    InstallRequest,
    SuiteLog,
    compute_deadline_s,
    require_disk_was_free,
)
from runners.scripting.suites.project import Project, open_project
from runners.scripting.suites.reporter import SuiteEvents
from runners.scripting.suites.resources import Suites
from runners.scripting.suites.run import (
    LIMITS,
    Browser,
    SuiteRun,
    describe_settings,
    list_warnings,
    run_suite,
)
from runners.scripting.suites.verdict import find_failure
from runners.scripting.trust.roots import Roots
from runners.timing import time_limit
from sandbox.program import ProgramExit, split_time

_MOST_RESERVED_S: Final = 15.0
"""The most time kept for the end of a run: to write traces, end processes and read files."""


class BrowserDidNotStartError(Exception):
    """Our Chromium does not start; no suite is to blame for that."""


class PlaywrightRunner:
    """Runs check suites."""

    spec = PlaywrightSpec

    async def observe(self, spec: PlaywrightSpec, ctx: RunContext) -> Observation:
        """Fetch the bundle, install its packages, run its tests."""
        run = _Run(spec, ctx, ctx.network.scripts())
        try:
            return await run.execute()
        except CheckFailed as failed:
            return run.observation(failed.failure)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What the steps of a run share."""

    project: Project
    browser: Path
    roots: Roots
    environment: Mapping[str, str]
    """The variables of all processes; those of the tests have more."""


class _Run:
    """One run of a suite."""

    def __init__(self, spec: PlaywrightSpec, ctx: RunContext, harness: Harness) -> None:
        self._spec = spec
        self._ctx = ctx
        self._harness = harness
        self._log = SuiteLog()
        self._time = split_time(
            ctx.stated_limit_s, within_s=ctx.timeout_s, most_reserved_s=_MOST_RESERVED_S
        )
        self._installed_s: float | None = None
        """How long its packages took to install. None: they are not installed."""
        self._evidence: PlaywrightEvidence | None = None
        """What the tests reported. None: they have not been started."""
        self._artifacts: tuple[Artifact, ...] = ()
        self._took_ms: float | None = None
        """How long the tests took. None: they have not been started."""

    async def execute(self) -> Observation:
        """Install the suite, run its tests, and collect what they left.

        Raises:
            CheckFailed: the suite is at fault.
        """
        suites = self._harness.require_suites()
        ground = await self._ground(suites)
        began_ms = self._log.now_ms()
        async with suites.dependencies.of(self._order(ground)) as told:
            self._note_packages(self._log.now_ms() - began_ms)
            facts, ended = await self._test(ground, told)
        failure = await self._judged(facts, ended)
        await self._keep(ground.project, facts, ended)
        return self.observation(failure)

    def _note_packages(self, took_ms: float) -> None:
        self._installed_s = took_ms / 1000
        took = time_limit(round(self._installed_s, 1))
        self._log.note(f"The packages took {took}; the time of the result counts from here.")

    async def _ground(self, suites: Suites) -> _Ground:
        harness, ctx = self._harness, self._ctx
        browser = require_browser(harness)
        bundle = await suites.bundles.fetch(self._spec.bundle_sha256)
        project = await asyncio.to_thread(
            open_project, bundle, self._spec, ctx.workspace, harness.runtimes
        )
        presents = bool(ctx.client_certificates)
        roots = await asyncio.to_thread(harness.trust.roots, presents=presents)
        distrust = await asyncio.to_thread(roots.install_in, project.home)
        if distrust is not None:
            self._log.note(distrust, level="WARN")
        environment = self._environment(project, roots)
        return _Ground(project=project, browser=browser, roots=roots, environment=environment)

    def _order(self, ground: _Ground) -> InstallRequest:
        now_s, run = self._log.now_ms() / 1000, self._time
        until_s = compute_deadline_s(now_s, run_ends_s=run.stop_after_s)
        return InstallRequest(
            project=ground.project,
            spec=self._spec,
            environment=ground.environment,
            variables=self._variables(),
            deadline_s=until_s,
            limit_s=run.limit_s if until_s == run.stop_after_s else LIMIT_S,
            log=self._log,
        )

    async def _test(
        self, ground: _Ground, told: Mapping[str, str]
    ) -> tuple[SuiteEvents, ProgramExit]:
        """Run the test command; `told`: what its package manager has to know."""
        command = self._spec.test_command
        self._log.note(f"$ {command}")
        started_ms = self._log.now_ms()
        async with open_run_proxy(self._ctx, ground.roots, ground.project.home) as gate:
            run = SuiteRun(
                project=ground.project,
                command=command,
                browser=self._browser(ground.browser, gate),
                environment={**self._ctx.location_secrets, **ground.environment, **told},
                secret_names=secret_names(self._ctx.variables),
                time=self._time.minus(started_ms / 1000),
                packages=self._harness.require_suites().packages,
            )
            facts, ended = await run_suite(self._harness.sandbox, run)
            settings = describe_settings(facts.defaults)
            lines = (LogLine(after_ms=0, level="INFO", message=settings), *ended.log)
            self._log.add(lines, since_ms=started_ms)
            for notice in () if gate is None else gate.notes:
                self._log.note(notice, level="WARN")
        lost = facts.lost_launch
        if lost is not None and await self._did_not_start(ground, lost):
            raise BrowserDidNotStartError(lost.message)
        return facts, ended

    async def _did_not_start(self, ground: _Ground, lost: LostLaunch) -> bool:
        harness, runtime = self._harness, ground.project.runtime
        proof = LaunchTest(
            sandbox=harness.sandbox,
            browser=ground.browser,
            environment=lambda home: harness.environment(runtime, home),
        )
        left_s = self._ctx.timeout_s - self._log.now_ms() / 1000
        return await is_our_fault(lost, proof, within_s=max(0.0, left_s / 2))

    async def _judged(self, facts: SuiteEvents, ended: ProgramExit) -> Failure | None:
        for remark in list_warnings(self._spec, ran=facts.playwright):
            self._log.note(remark, level="WARN")
        failure = find_failure(
            facts,
            ended,
            LIMITS,
            time=self._time,
            installed_s=self._installed_s or 0.0,
        )
        if failure is not None:
            said = (*(line.message for line in ended.log), *facts.messages)
            place = self._ctx.workspace.folder
            await asyncio.to_thread(require_disk_was_free, said, place, folder_mb=LIMITS.folder_mb)
        return failure

    def _browser(self, program: Path, gate: RunProxy | None) -> Browser:
        return Browser(
            program=program,
            arguments=BROWSER_ARGUMENTS,
            ffmpeg=self._harness.runtimes.ffmpeg,
            proxies=build_proxy_settings(gate),
        )

    async def _keep(self, project: Project, facts: SuiteEvents, ended: ProgramExit) -> None:
        self._took_ms = round(ended.took_s * 1000, 1)
        self._evidence = facts.evidence(node_version=project.runtime.node_version)
        names = FileNames.of(self._ctx)
        left = await asyncio.to_thread(collect_attachments, facts, project, names)
        reports = await asyncio.to_thread(collect_reports, facts, project, names)
        self._log.add((*left.notices, *reports.notices), since_ms=self._log.now_ms())
        report = await asyncio.to_thread(
            write_report, project, facts, self._evidence, left.names, took_ms=self._took_ms
        )
        self._artifacts = (report, *left.artifacts, *reports.artifacts)

    def _variables(self) -> dict[str, str]:
        return filter_variables({one.key: one.value for one in self._ctx.variables})

    def _environment(self, project: Project, roots: Roots) -> dict[str, str]:
        """What the suite's processes know, before what guides them."""
        return {
            **self._harness.environment(project.runtime, project.home),
            "npm_config_update_notifier": "false",
            **self._ctx.environment,
            **self._variables(),
            "SERVICE": "1",
            **roots.environment,
        }

    def observation(self, failure: Failure | None) -> Observation:
        """What was observed, complete or not."""
        installed_s = self._installed_s
        installed_ms = None if installed_s is None else round(installed_s * 1000, 1)
        return Observation(
            response_time_ms=self._took_ms,
            timings=Timings(installation=installed_ms, total=self._took_ms),
            failure=failure,
            evidence=self._evidence,
            artifacts=self._artifacts,
            log=self._log.lines,
        )
