"""Runs a package manager in a run's folder, and judges how it ended."""

import asyncio
import contextlib
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from contract.result import FailureKind
from runners.kit.failures import CheckFailed
from runners.kit.isolation.sandbox import Ended, Limits, Program, Sandbox
from runners.kit.suites.disk import require_room_after
from runners.kit.suites.installation import Installation
from runners.kit.suites.order import Order
from runners.kit.suites.package_manager import Manager, is_plain_install
from runners.kit.suites.project import Project
from runners.kit.suites.registry import RegistryAwayError, chooses, is_away
from runners.kit.suites.verdict import because
from runners.kit.time_words import time_limit

LIMIT_S: Final = 300.0
"""The longest that the installations of a run may take together."""
LIMITS: Final = Limits(memory_mb=3072, file_mb=500, folder_mb=4000)
_SHELL: Final = "/bin/sh"


class Installer:
    """Shared by all runs of an agent."""

    def __init__(self, sandbox: Sandbox, *, environment: Mapping[str, str]) -> None:
        """`environment`: the agent's proxies and further roots, which installations need."""
        self._sandbox = sandbox
        self._environment = dict(environment)

    async def install(self, order: Order, wanted: Installation, folder: Path) -> None:
        """Install in a folder of the run.

        Raises:
            CheckFailed: the suite, its packages or its command stand in the way.
            RegistryAwayError: nobody answered where packages come from.
            OSError: the disk refuses it, or the process cannot be started.
        """
        command = wanted.command or shlex.join(wanted.tool.install)
        order.log.note(f"$ {command}")
        ended = await self._run(order, self._program(order, wanted, folder, command))
        if ended.exit_code != 0:
            await asyncio.to_thread(_require_room, order, ended)
            await asyncio.to_thread(self._require_registry, order, wanted, ended)
        _require_success(ended, command, order)
        await asyncio.to_thread(_require_own_folders, order.project, wanted)

    def _program(self, order: Order, wanted: Installation, folder: Path, command: str) -> Program:
        project = order.project
        return Program(
            argv=(_SHELL, "-c", command),
            folder=folder,
            env={
                **proxies_for(wanted.tool.manager, self._environment),
                **order.environment,
                **manager_environment(project.home, wanted.tool.manager),
                "PATH": f"{project.programs}:{order.environment['PATH']}",
                "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1",
            },
            limits=LIMITS,
            facts_fd=False,
        )

    def _require_registry(self, order: Order, wanted: Installation, ended: Ended) -> None:
        """Refuse to blame a suite for a registry that we chose and cannot reach; it blocks."""
        if wanted.command is not None and not is_plain_install(wanted.command):
            return
        said = [line.message for line in ended.log]
        if is_away(said, self._environment) and not chooses((*order.variables, *wanted.settings())):
            raise RegistryAwayError(
                f"The registry of packages cannot be reached{because(ended.log)}."
            )

    async def _run(self, order: Order, program: Program) -> Ended:
        started_ms = order.log.now_ms()
        child = await self._sandbox.start(program, owner=order.project.workspace)
        timeout_s = max(order.until_s - started_ms / 1000, 1)
        ended = await child.ended(timeout_s=timeout_s, on_fact=lambda _: None)
        order.log.add(ended.log, since_ms=started_ms)
        return ended


def proxies_for(manager: Manager, environment: Mapping[str, str]) -> dict[str, str]:
    """The agent's proxies in the words of a package manager. Pure."""
    names = ("HTTP_PROXY", "HTTPS_PROXY") if manager is Manager.YARN_BERRY else ()
    own = {f"YARN_{name}": environment[name] for name in names if name in environment}
    return {**environment, **own}


def installed_until_s(now_s: float, *, run_ends_s: float) -> float:
    """When all installations that begin now have to have ended. Pure."""
    return min(run_ends_s, now_s + LIMIT_S)


def manager_environment(home: Path, manager: Manager) -> dict[str, str]:
    """What a package manager is told, so that it keeps to the run's folder. Pure."""
    own = {
        Manager.NPM: {},
        Manager.PNPM: {
            "npm_config_store_dir": str(home / "pnpm"),
            "npm_config_package_import_method": "copy",
        },
        Manager.BUN: {"BUN_INSTALL_CACHE_DIR": str(home / "bun")},
        Manager.YARN_CLASSIC: {"YARN_CACHE_FOLDER": str(home / "yarn")},
        Manager.YARN_BERRY: {
            "YARN_CACHE_FOLDER": str(home / "yarn"),
            "YARN_NODE_LINKER": "node-modules",
            "YARN_IGNORE_PATH": "1",
            "YARN_ENABLE_TELEMETRY": "0",
            "YARN_ENABLE_GLOBAL_CACHE": "0",
        },
    }
    return {"npm_config_cache": str(home / "npm"), **own[manager]}


def _limit_of(order: Order) -> str:
    if order.limit_s == LIMIT_S:
        return f"the {time_limit(LIMIT_S)} that installations have"
    return f"the limit of the whole run, {time_limit(order.limit_s)}"


def _require_room(order: Order, ended: Ended) -> None:
    said = (line.message for line in ended.log)
    require_room_after(said, order.project.workspace.folder, folder_mb=LIMITS.folder_mb)


def _require_own_folders(project: Project, wanted: Installation) -> None:
    """Nothing of the run's is to be written or read by us through a link that a package made."""
    workspace, needed = project.workspace, {wanted.folder, project.working_dir}
    with contextlib.suppress(RuntimeError):  # links in a circle
        are_ours = all(workspace.holds(folder) and folder.is_dir() for folder in needed)
        if are_ours and not any(map(Path.is_symlink, workspace.folder.iterdir())):
            return
    message = "Installing the packages removed a folder of the run, or put a link in its place."
    raise CheckFailed(FailureKind.SCRIPT, message, {"code": "INSTALL"})


def _require_success(ended: Ended, command: str, order: Order) -> None:
    """Blame the suite for what its packages or its command did."""
    if ended.timed_out:
        message = f"Installing the packages with `{command}` did not end within "
        raise CheckFailed(
            FailureKind.TIMEOUT,
            f"{message}{_limit_of(order)}.",
            {"code": "INSTALL", "limitSeconds": order.limit_s},
        )
    if ended.out_of_memory:
        message = f"Installing the packages with `{command}` used more memory than its limit of "
        raise CheckFailed(FailureKind.OUT_OF_MEMORY, f"{message}{LIMITS.memory_mb} MB.")
    if ended.exit_code != 0:
        how = f"exit code {ended.exit_code}" if ended.signal is None else f"signal {ended.signal}"
        message = f"Installing the packages with `{command}` ended with {how}{because(ended.log)}."
        raise CheckFailed(FailureKind.SCRIPT, message)
