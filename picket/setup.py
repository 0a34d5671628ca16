"""`picket setup`: installs what scripted checks run on, or says what of it is there."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from picket.errors import CommandError, ExitCode
from runners.installation.debian import (
    CHROMIUM,
    MissingPackagesError,
    has_apt,
    install,
    missing_packages,
)
from runners.installation.places import (
    installation_folder,
    is_current,
    runtime_ids,
    runtimes_folder,
)
from runners.installation.progress import say
from runners.installation.runtimes import (
    Cost,
    InstallationError,
    estimate_cost,
    has_ffmpeg,
)
from runners.installation.runtimes import install as install_runtimes
from runners.scripting.node.runtimes import Runtimes, find_runtimes
from runners.scripting.playwright.compile_cache import is_warm, warm

_CHROMIUM_COST: Final = Cost(download_mb=160, disk_mb=480)
"""On a machine that has nothing of what it needs."""
_DOWNLOAD_LIMIT_S: Final = 1800


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupOptions:
    """What `picket setup` was asked for."""

    check: bool
    """Only say what is there."""
    packages: bool
    """Install Debian's packages too."""


def run_setup(options: SetupOptions) -> int:
    """Install what is missing; 1 if something still is."""
    if options.check:
        return _tell(runtimes_folder(), remedy="run picket setup")
    folder = installation_folder()
    # Runs of scripts have users of their own, who read all of it.
    os.umask(0o022)
    outdated = [one for one in runtime_ids() if not is_current(folder, one)]
    packages = missing_packages(folder) if options.packages else []
    _announce(folder, outdated, packages)
    try:
        install_runtimes(folder, outdated)
    except InstallationError as problem:
        raise CommandError(str(problem), ExitCode.FAILED) from problem
    _install_packages(folder, packages)
    _warm_all(folder)
    return _tell(folder, remedy="the reason is above")


def _announce(folder: Path, outdated: list[str], packages: list[str]) -> None:
    """What it will cost, before it begins; nothing, where there is nothing to do."""
    cost = estimate_cost(outdated)
    if CHROMIUM in packages:
        cost += _CHROMIUM_COST
    if not cost.disk_mb:
        return
    what = [*(f"the runtime {one}" for one in outdated), *packages]
    say(f"to install: {', '.join(what)}; the runtimes in {folder}")
    say(
        f"this downloads about {cost.download_mb} MB and takes about {cost.disk_mb} MB of disk"
        " and one to five minutes; npm also keeps its downloads in its cache"
    )


def _install_packages(folder: Path, packages: list[str]) -> None:
    try:
        if has_apt():
            install(packages)
        elif CHROMIUM in packages:
            _download_chromium(folder)
    except (MissingPackagesError, OSError, subprocess.SubprocessError) as problem:
        say(str(problem))


def _download_chromium(folder: Path) -> None:
    """Playwright's own build, where there is no package; its libraries may be missing."""
    say("downloading Chromium's headless shell")
    newest = folder / max(runtime_ids())
    browsers = folder / "browsers"
    cli = newest / "node_modules/@playwright/test/cli.js"
    subprocess.run(  # noqa: S603 - our own command
        (newest / "bin/node", cli, "install", "--only-shell", "chromium"),
        env={**os.environ, "PLAYWRIGHT_BROWSERS_PATH": str(browsers)},
        stdout=subprocess.DEVNULL,
        timeout=_DOWNLOAD_LIMIT_S,
        check=True,
    )
    programs = (*browsers.rglob("chrome-headless-shell"), *browsers.rglob("headless_shell"))
    found = next(one for one in programs if one.is_file() and os.access(one, os.X_OK))
    link = folder / "chromium"
    link.unlink(missing_ok=True)
    link.symlink_to(found.relative_to(folder))


def _warm_all(folder: Path) -> None:
    """Without it, runs of Playwright are slower and otherwise the same."""
    runtimes = _found(folder)
    for runtime in runtimes.by_id.values():
        if is_warm(runtime, runtimes):
            continue
        try:
            warm(runtime, runtimes)
        except subprocess.TimeoutExpired as problem:
            _tell_cold(runtime.id, f"compiling took more than {problem.timeout:.0f} s")
        except (OSError, subprocess.SubprocessError) as problem:
            _tell_cold(runtime.id, str(problem))


def _tell_cold(runtime_id: str, reason: str) -> None:
    say(f"the runtime {runtime_id} has no compile cache and is slower: {reason}")


def _tell(folder: Path, *, remedy: str) -> int:
    """One line for each part; 1 if one is missing. `remedy`: of a missing Chromium."""
    runtimes = _found(folder)
    for one in runtime_ids():
        click.echo(f"Runtime {one}: {_state(folder, one)}")
    click.echo(f"ffmpeg: {_ffmpeg(folder)}")
    click.echo(f"Chromium: {_chromium(runtimes, remedy)}")
    complete = (
        all(is_current(folder, one) for one in runtime_ids())
        and has_ffmpeg(folder)
        and runtimes.browser is not None
    )
    return ExitCode.OK if complete else ExitCode.FAILED


def _ffmpeg(folder: Path) -> str:
    if has_ffmpeg(folder):
        return f"installed, {folder / 'ffmpeg'}"
    return "missing: no videos are recorded; run picket setup"


def _state(folder: Path, runtime_id: str) -> str:
    if is_current(folder, runtime_id):
        return f"installed, {folder / runtime_id}"
    if (folder / runtime_id).exists():
        return f"incomplete or from another release, {folder / runtime_id}; run picket setup"
    return f"missing in {folder}; run picket setup"


def _chromium(runtimes: Runtimes, remedy: str) -> str:
    if runtimes.browser is not None:
        return f"version {runtimes.browser_version}, {runtimes.browser}"
    return f"missing: BROWSER checks and Playwright suites do not run here; {remedy}"


def _found(folder: Path) -> Runtimes:
    browser = os.environ.get("CHROMIUM_PATH")
    return find_runtimes(folder, Path(browser) if browser else None)
