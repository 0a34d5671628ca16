"""Runs a whole Playwright project."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from contract.checks import PlaywrightSpec
from contract.result import CheckFailed, FailureKind, LogLine
from redaction.policy import environment_secrets
from runners.net.http.request import USER_AGENT
from runners.scripting.node.files import UserPaths
from runners.scripting.playwright.chromium import make_registry, resolve_package
from runners.scripting.playwright.reporter import strip_colours
from runners.scripting.playwright.secret_messages import SecretMessages
from runners.scripting.suites.project import (
    ALWAYS,
    CommandError,
    Project,
    choose_added_arguments,
    parse_playwright_arguments,
    read_option_texts,
)
from runners.scripting.suites.reporter import SuiteEvents
from sandbox.program import Limits, Program, ProgramExit, RunTime
from sandbox.sandbox import Sandbox
from sandbox.workspace import remove_path

LIMITS: Final = Limits(memory_mb=4096, folder_mb=4000)
_FACTS: Final = (
    "prepares",
    "inSetup",
    "inTeardown",
    "began",
    "defaults",
    "awake",
    "hung",
    "testBegan",
    "testError",
    "testEnded",
    "attachment",
    "wrote",
    "suiteError",
    "launching",
    "launched",
    "launchFailed",
    "browserKilled",
    "ended",
    "secret",
    "typed",
    "masked",
    "unshowing",
)
_PRELOADS: Final = ("preload.cjs", "suite_preload.cjs")
_SHELL: Final = "/bin/sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """The Chromium that a location starts."""

    program: Path
    arguments: tuple[str, ...]
    ffmpeg: Path | None
    """The program that records videos. None: there is none."""
    proxies: Mapping[str, object]
    """The proxies of its traffic, as settings.cjs reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A parsed test command."""

    argv: tuple[str, ...]
    added: tuple[str, ...]
    """Arguments of `playwright test` that are added to the suite's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """A test command that is about to start."""

    project: Project
    command: str
    browser: Browser
    environment: Mapping[str, str]
    secret_names: tuple[str, ...]
    """The names of variables whose values are secret."""
    time: RunTime
    packages: Path
    """The folder of packages that runs share."""


async def run_suite(sandbox: Sandbox, run: SuiteRun) -> tuple[SuiteEvents, ProgramExit]:
    """Run the command to its end, or to its time limit.

    Raises:
        CheckFailed: the command cannot be started as it is.
        OSError: our fault.
    """
    project = run.project
    plan = await asyncio.to_thread(_make_plan, project, run.command)
    await asyncio.to_thread(_offer_browser, project, run.browser)
    packages = (run.packages, project.runtime.modules.parent)
    paths = UserPaths(
        project.root,
        working_dir=project.working_dir,
        packages=packages,
        harness=project.runtime.harness,
    )
    facts = SuiteEvents(paths, defaults=_name_settings(plan.added))
    program = _build_program(run, plan)
    child = await sandbox.start(program, owner=project.workspace)
    project.workspace.set_script_secrets(environment_secrets(program.env, run.secret_names))
    told = SecretMessages(project.workspace, receiver=facts)
    ended = await child.wait(
        timeout_s=run.time.stop_after_s,
        grace_s=run.time.grace_s,
        on_fact=told.take,
        on_stop=told.stop,
    )
    if ended.facts_cut:
        project.workspace.mark_facts_lost()
    return facts, msgspec.structs.replace(ended, log=_translate_log(ended.log, paths))


def _name_settings(added: tuple[str, ...]) -> tuple[str, ...]:
    """Name the settings behind the options that are added only where a suite leaves them open."""
    options = zip(added[::2], added[1::2], strict=True)
    return tuple(f"{name.lstrip('-')}: {value}" for name, value in options if name not in ALWAYS)


def _translate_log(log: tuple[LogLine, ...], paths: UserPaths) -> tuple[LogLine, ...]:
    """Translate paths for the author, and remove the colours that some tools always print."""
    plain = ((one, paths.line(strip_colours(one.message))) for one in log)
    return tuple(msgspec.structs.replace(one, message=message) for one, message in plain)


def _make_plan(project: Project, command: str) -> _Plan:
    try:
        arguments = parse_playwright_arguments(command)
    except CommandError as problem:
        raise _refuse(str(problem)) from problem
    runner = _find_test_runner(project)
    texts, is_complete = read_option_texts(project.root, project.working_dir, command, arguments)
    program = (str(project.runtime.node), str(runner / "cli.js"), "test")
    return _Plan(
        argv=(_SHELL, "-c", command) if arguments is None else (*program, *arguments),
        added=choose_added_arguments(texts, is_complete=is_complete),
    )


def _build_program(run: SuiteRun, plan: _Plan) -> Program:
    return Program(
        argv=plan.argv,
        folder=run.project.working_dir,
        env={**run.environment, **_build_harness_environment(run, plan)},
        limits=LIMITS,
    )


def _offer_browser(project: Project, browser: Browser) -> None:
    # Packages that were installed in place may have put anything there.
    remove_path(project.browsers)
    make_registry(
        project.browsers, project.working_dir, browser=browser.program, ffmpeg=browser.ffmpeg
    )


def _find_test_runner(project: Project) -> Path:
    for name in ("@playwright/test", "playwright"):
        found = resolve_package(name, project.working_dir)
        if found is not None and (found / "cli.js").is_file():
            return found
    raise _refuse("The suite's packages hold no @playwright/test; add it to package.json.")


def _build_harness_environment(run: SuiteRun, plan: _Plan) -> dict[str, str]:
    """Build the variables that load and configure the harness."""
    project, environment = run.project, run.environment
    harness = project.runtime.harness / "playwright"
    preloads = " ".join(f"--require={harness / name}" for name in _PRELOADS)
    return {
        "NODE_OPTIONS": f"{preloads} {environment.get('NODE_OPTIONS', '')}".strip(),
        "PATH": f"{project.programs}:{environment['PATH']}",
        "PICKET_FACTS_FD": "3",
        "PICKET_HARNESS": json.dumps(_build_settings(run)),
        "PICKET_TEST_ARGUMENTS": json.dumps(plan.added),
        "PICKET_USER_AGENT": USER_AGENT,
        "PLAYWRIGHT_BROWSERS_PATH": str(project.browsers),
        "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1",
        "PLAYWRIGHT_SKIP_VALIDATE_HOST_REQUIREMENTS": "1",
        "PLAYWRIGHT_HTML_OPEN": "never",
        "PW_TEST_HTML_REPORT_OPEN": "never",  # its name before Playwright 1.42
        "PW_TEST_REPORTER": str(harness / "suite_reporter.cjs"),
    }


def _build_settings(run: SuiteRun) -> dict[str, Any]:
    """Build the settings that settings.cjs reads."""
    browser = run.browser
    return {
        "root": str(run.project.working_dir),
        "suite": str(run.project.root),
        "report": str(run.project.report),
        "browser": str(browser.program),
        "browserArguments": browser.arguments,
        **browser.proxies,
        "video": browser.ffmpeg is not None,
        "secretNames": run.secret_names,
        "facts": _FACTS,
    }


def _refuse(message: str) -> CheckFailed:
    return CheckFailed(FailureKind.SCRIPT, message)


def describe_settings(defaults: tuple[str, ...]) -> str:
    """Describe for the log what was set of the suite's configuration."""
    if not defaults:
        return "Set for this run: trace: 'on'."
    open_ones = ", ".join(defaults)
    return f"Set for this run: trace: 'on', and what the project leaves open: {open_ones}."


_AVAILABLE_BROWSER = "chromium"


def list_warnings(spec: PlaywrightSpec, *, ran: str | None) -> Iterator[str]:
    """List warnings for the log. `ran`: the suite's own Playwright. None: it did not begin."""
    named = spec.playwright_version
    if ran is not None and named and named.removeprefix("v") != ran:
        yield (
            f"The check names Playwright {named}; the suite's packages hold {ran}, which was used."
        )
    missing = [name for name in spec.browsers if name != _AVAILABLE_BROWSER]
    if missing:
        yield (
            f"The check names {' and '.join(missing)}; at this location there is only Chromium, "
            "and projects for other browsers fail."
        )
