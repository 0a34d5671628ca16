"""Installs a suite's packages, or finds that it was done before."""

import asyncio
import contextlib
import errno
import json
import shlex
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from contract.result import FailureKind
from contract.scripted import PlaywrightSpec
from runners.kit.failures import CheckFailed
from runners.kit.removal import remove_folder
from runners.kit.sandbox import Ended, Limits, Program, Sandbox
from runners.kit.suites.disk import require_room_after
from runners.kit.suites.installation import Installation, installation, key_of
from runners.kit.suites.log import SuiteLog
from runners.kit.suites.node_modules import Borrowed, NodeModules, link_packages
from runners.kit.suites.package_manager import Manager, Tool, UnknownManagerError
from runners.kit.suites.project import Project, add_programs
from runners.kit.suites.verdict import because
from runners.kit.time_words import duration

LIMIT_S: Final = 300.0
"""The longest that an installation may take."""
LIMITS: Final = Limits(memory_mb=3072, file_mb=500, folder_mb=4000)
_SHELL: Final = "/bin/sh"
_BUN: Final = """\
[ -p /proc/$$/fd/3 ] || exec {program} "$@"
PICKET_PIPE="${{TMPDIR:-$HOME}}/picket-$$"
export PICKET_PIPE
mkfifo "$PICKET_PIPE" && exec 4<>"$PICKET_PIPE" || exit
cat <"$PICKET_PIPE" >&3 4>&- &
{program} "$@" 3>&- 4>&-
code=$?
exec 4>&-
wait
exit $code
"""
"""Bun closes what we hand on; a pipe with a name leads past it to ours, as long as it runs."""
_TOO_DEEP: Final = "Installing the packages left folders in each other without end."


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One run's wish for packages."""

    project: Project
    spec: PlaywrightSpec
    environment: Mapping[str, str]
    variables: Mapping[str, str]
    """The check's own: what was installed with them is kept for these alone, as they may say where
    packages come from and what runs beside."""
    until_s: float
    """When all installations must have ended, by the log's clock."""
    log: SuiteLog

    def wanted(self) -> Installation:
        """How to fulfil it; it blocks.

        Raises:
            UnknownManagerError: nobody here can.
        """
        project = self.project
        return installation(project.root, project.working_dir, self.spec.install_command)

    def key(self, wanted: Installation) -> str:
        """What the packages are kept under; it blocks."""
        told = json.dumps([dict(self.variables), self.spec.cache_hash], sort_keys=True)
        engine = f"node-{self.project.runtime.node_version} {told}"
        return key_of(wanted, self.project.root, self.project.working_dir, engine)


class Dependencies:
    """Shared by all runs of an agent."""

    def __init__(
        self, sandbox: Sandbox, kept: NodeModules, *, environment: Mapping[str, str]
    ) -> None:
        """`environment`: the agent's proxies and further roots, which installations need."""
        self._sandbox = sandbox
        self._kept = kept
        self._environment = dict(environment)

    @asynccontextmanager
    async def of(self, order: Order) -> AsyncIterator[dict[str, str]]:
        """Packages in the project's place for as long as the block lasts.

        Gives what the package manager has to know when the test command goes through it.

        Raises:
            CheckFailed: they cannot be installed.
            OSError: the disk refuses it, or a process cannot be started.
        """
        try:
            wanted = await asyncio.to_thread(order.wanted)
        except UnknownManagerError as problem:
            raise CheckFailed(FailureKind.SCRIPT, str(problem)) from problem
        async with self._tool(order, wanted), self._packages(order, wanted):
            yield manager_environment(order.project.home, wanted.tool.manager)

    @asynccontextmanager
    async def _tool(self, order: Order, wanted: Installation) -> AsyncIterator[None]:
        """The package manager as a program, where the runtime has not got it."""
        if wanted.tool.package is None:
            yield
            return
        only = tool_alone(wanted)
        borrowed = await self._borrowed(order, only) or await self._fresh(order, only)
        try:
            found = programs(wanted.tool, borrowed.modules)
            await asyncio.to_thread(add_programs, order.project, found)
            yield
        finally:
            await asyncio.to_thread(self._kept.give_back, borrowed)

    @asynccontextmanager
    async def _packages(self, order: Order, wanted: Installation) -> AsyncIterator[None]:
        if wanted.in_place_because is not None:
            order.log.note(f"The packages are installed in place: {wanted.in_place_because}.")
            await self._install(order, wanted, wanted.folder)
            yield
            return
        borrowed = await self._borrowed(order, wanted)
        if borrowed is not None:
            order.log.note("The packages were installed before, and are used again.")
        borrowed = borrowed or await self._fresh(order, wanted)
        try:
            await asyncio.to_thread(link_packages, borrowed.modules, wanted.folder)
            yield
        finally:
            await asyncio.to_thread(self._kept.give_back, borrowed)

    async def _borrowed(self, order: Order, wanted: Installation) -> Borrowed | None:
        """What was installed before. None: nothing, or it is not to be used."""
        if order.spec.refresh_cache:
            return None
        key = await asyncio.to_thread(order.key, wanted)
        return await asyncio.to_thread(self._kept.borrow, key)

    async def _fresh(self, order: Order, wanted: Installation) -> Borrowed:
        key = await asyncio.to_thread(order.key, wanted)
        place = order.project.workspace.folder / "install"
        await asyncio.to_thread(_copy_inputs, wanted, place)
        await self._install(order, wanted, place)
        modules = place / "node_modules"
        if modules.is_symlink() or not modules.is_dir():
            raise CheckFailed(FailureKind.SCRIPT, _nothing_installed(wanted))
        borrowed = await asyncio.to_thread(self._keep, key, modules)
        await asyncio.to_thread(remove_folder, place)
        return borrowed

    def _keep(self, key: str, modules: Path) -> Borrowed:
        try:
            return self._kept.keep(key, modules)
        except RecursionError as problem:
            raise CheckFailed(FailureKind.SCRIPT, _TOO_DEEP) from problem
        except OSError as problem:
            if problem.errno == errno.ENAMETOOLONG:
                raise CheckFailed(FailureKind.SCRIPT, _TOO_DEEP) from problem
            raise

    async def _install(self, order: Order, wanted: Installation, folder: Path) -> None:
        command = wanted.command or shlex.join(wanted.tool.install)
        program = Program(
            argv=(_SHELL, "-c", command),
            folder=folder,
            env={
                **self._environment,
                **order.environment,
                **manager_environment(order.project.home, wanted.tool.manager),
                "PATH": f"{order.project.programs}:{order.environment['PATH']}",
                "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1",
            },
            limits=LIMITS,
            facts_fd=False,
        )
        order.log.note(f"$ {command}")
        started_ms = order.log.now_ms()
        child = await self._sandbox.start(program, owner=order.project.workspace)
        timeout_s = min(max(order.until_s - started_ms / 1000, 1), LIMIT_S)
        ended = await child.ended(timeout_s=timeout_s, on_fact=lambda _: None)
        order.log.add(ended.log, since_ms=started_ms)
        if ended.exit_code != 0:
            said = (line.message for line in ended.log)
            place = order.project.workspace.folder
            await asyncio.to_thread(require_room_after, said, place, folder_mb=LIMITS.folder_mb)
        _require_success(ended, command)
        await asyncio.to_thread(_require_own_folders, order.project, wanted)


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


def tool_alone(wanted: Installation) -> Installation:
    """The installation of the package manager, in a place of its own. Pure.

    It hears of the suite's registry alone, so others may use it who have the same one.
    """
    package = wanted.tool.package or ""
    install = ("npm", "install", "--prefix=.", "--no-save", "--no-audit", "--no-fund", package)
    return msgspec.structs.replace(
        wanted,
        tool=Tool(manager=Manager.NPM, package=wanted.tool.package, install=install),
        command=None,
        inputs=tuple(name for name in wanted.inputs if name == ".npmrc"),
        in_place_because=None,
    )


def programs(tool: Tool, modules: Path) -> dict[str, str]:
    """Shell scripts that start a package manager. Pure."""
    names = {Manager.PNPM: ("pnpm", "pnpx"), Manager.BUN: ("bun", "bunx")}
    start = _BUN if tool.manager is Manager.BUN else 'exec {program} "$@"\n'
    return {
        name: "#!/bin/sh\n" + start.format(program=shlex.quote(str(modules / ".bin" / name)))
        for name in names.get(tool.manager, ("yarn",))
    }


def _copy_inputs(wanted: Installation, place: Path) -> None:
    place.mkdir()
    for name in wanted.inputs:
        target = place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(wanted.folder / name, target)


def _require_own_folders(project: Project, wanted: Installation) -> None:
    """Nothing of the run's is to be written or read by us through a link that a package made."""
    workspace, needed = project.workspace, {wanted.folder, project.working_dir}
    with contextlib.suppress(RuntimeError):  # links in a circle
        are_ours = all(workspace.holds(folder) and folder.is_dir() for folder in needed)
        if are_ours and not any(map(Path.is_symlink, workspace.folder.iterdir())):
            return
    message = "Installing the packages removed a folder of the run, or put a link in its place."
    raise CheckFailed(FailureKind.SCRIPT, message, {"code": "INSTALL"})


def _require_success(ended: Ended, command: str) -> None:
    """Blame the suite for what its packages or its command did."""
    if ended.timed_out:
        message = f"Installing the packages with `{command}` did not end within "
        raise CheckFailed(FailureKind.TIMEOUT, f"{message}{duration(ended.took_s)}.")
    if ended.out_of_memory:
        message = f"Installing the packages with `{command}` used more memory than its limit of "
        raise CheckFailed(FailureKind.OUT_OF_MEMORY, f"{message}{LIMITS.memory_mb} MB.")
    if ended.exit_code != 0:
        how = f"exit code {ended.exit_code}" if ended.signal is None else f"signal {ended.signal}"
        message = f"Installing the packages with `{command}` ended with {how}{because(ended.log)}."
        raise CheckFailed(FailureKind.SCRIPT, message)


def _nothing_installed(wanted: Installation) -> str:
    return f"Installing the packages with {wanted.tool.command} left no folder node_modules."
