"""Installs a project's packages, or borrows those of an earlier run."""

import asyncio
import contextlib
import json
import os
import re
import shlex
import shutil
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from contract.checks import PlaywrightSpec
from contract.result import CheckFailed, FailureKind, LogLine, MachineError
from runners.scripting.suites.package_cache import (
    AsyncPackageCache,
    BorrowedPackages,
    link_packages,
)
from runners.scripting.suites.package_manager import (
    Installation,
    Manager,
    Tool,
    UnknownManagerError,
    compute_key,
    is_plain_install,
    plan_installation,
)
from runners.scripting.suites.project import Project, add_programs
from runners.scripting.suites.verdict import describe_last_error
from runners.timing import time_limit
from sandbox.limits import FullDiskError
from sandbox.program import Limits, Program, ProgramExit
from sandbox.sandbox import Sandbox


class SuiteLog:
    """The log of a suite's run, in the order in which its lines came."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._lines: list[LogLine] = []

    @property
    def lines(self) -> tuple[LogLine, ...]:
        """All so far."""
        return tuple(self._lines)

    def now_ms(self) -> float:
        """The milliseconds since the run began."""
        return round((time.monotonic() - self._started) * 1000, 1)

    def note(self, message: str, *, level: Literal["INFO", "WARN"] = "INFO") -> None:
        """Add a line of the agent."""
        self._lines.append(LogLine(after_ms=self.now_ms(), level=level, message=message))

    def add(self, lines: Iterable[LogLine], *, since_ms: float) -> None:
        """Add the non-empty lines of a process, whose times count from its own start."""
        self._lines += (
            msgspec.structs.replace(line, after_ms=round(line.after_ms + since_ms, 1))
            for line in lines
            if line.message.strip()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallRequest:
    """A run's request for packages, which are installed or borrowed."""

    project: Project
    spec: PlaywrightSpec
    environment: Mapping[str, str]
    variables: Mapping[str, str]
    """The check's own variables. Packages that were installed with them are reused only with the
    same ones, as they may say where packages come from and which scripts run."""
    deadline_s: float
    """When all installations must have ended, in seconds since the log began."""
    limit_s: float
    """The limit behind the deadline: that of installations, or that of the whole run."""
    log: SuiteLog

    def plan_installation(self) -> Installation:
        """Plan the installation; it blocks.

        Raises:
            UnknownManagerError: no package manager here can install it.
        """
        project = self.project
        return plan_installation(project.root, project.working_dir, self.spec.install_command)

    def key(self, wanted: Installation) -> str:
        """Compute the key under which the packages are kept; it blocks."""
        told = json.dumps([dict(self.variables), self.spec.cache_hash], sort_keys=True)
        engine = f"node-{self.project.runtime.node_version} {told}"
        return compute_key(wanted, self.project.root, self.project.working_dir, engine)


LIMIT_S: Final = 300.0
"""The time limit of all installations of a run together."""
LIMITS: Final = Limits(memory_mb=3072, file_mb=500, folder_mb=4000)
_SHELL: Final = "/bin/sh"


class Installer:
    """Shared by all runs of an agent."""

    def __init__(self, sandbox: Sandbox, *, environment: Mapping[str, str]) -> None:
        """`environment`: variables for the agent's proxies and further roots."""
        self._sandbox = sandbox
        self._environment = dict(environment)

    async def install(self, request: InstallRequest, wanted: Installation, folder: Path) -> None:
        """Install packages in a folder of the run.

        Raises:
            CheckFailed: the suite, its packages or its command stand in the way.
            RegistryUnreachableError: no package registry answered.
            OSError: the disk refuses it, or the process cannot be started.
        """
        command = wanted.command or shlex.join(wanted.tool.install)
        request.log.note(f"$ {command}")
        ended = await self._run(request, self._program(request, wanted, folder, command))
        if ended.exit_code != 0:
            await asyncio.to_thread(_require_disk, request, ended)
            await asyncio.to_thread(self._require_registry, request, wanted, ended)
        _require_success(ended, command, request)
        await asyncio.to_thread(_require_own_folders, request.project, wanted)

    def _program(
        self, request: InstallRequest, wanted: Installation, folder: Path, command: str
    ) -> Program:
        project = request.project
        return Program(
            argv=(_SHELL, "-c", command),
            folder=folder,
            env={
                **build_proxy_environment(wanted.tool.manager, self._environment),
                **request.environment,
                **build_manager_environment(project.home, wanted.tool.manager),
                "PATH": f"{project.programs}:{request.environment['PATH']}",
                "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1",
            },
            limits=LIMITS,
            facts_fd=False,
        )

    def _require_registry(
        self, request: InstallRequest, wanted: Installation, ended: ProgramExit
    ) -> None:
        """Require that a registry that the suite did not choose was reachable; it blocks."""
        if wanted.command is not None and not is_plain_install(wanted.command):
            return
        said = [line.message for line in ended.log]
        if is_registry_unreachable(said, self._environment) and not names_a_registry(
            (*request.variables, *wanted.settings())
        ):
            raise RegistryUnreachableError(
                f"The registry of packages cannot be reached{describe_last_error(ended.log)}."
            )

    async def _run(self, request: InstallRequest, program: Program) -> ProgramExit:
        started_ms = request.log.now_ms()
        child = await self._sandbox.start(program, owner=request.project.workspace)
        timeout_s = max(request.deadline_s - started_ms / 1000, 1)
        ended = await child.wait(timeout_s=timeout_s, on_fact=lambda _: None)
        request.log.add(ended.log, since_ms=started_ms)
        return ended


def build_proxy_environment(manager: Manager, environment: Mapping[str, str]) -> dict[str, str]:
    """Build the variables that name the agent's proxies for a package manager. Pure."""
    names = ("HTTP_PROXY", "HTTPS_PROXY") if manager is Manager.YARN_BERRY else ()
    own = {f"YARN_{name}": environment[name] for name in names if name in environment}
    return {**environment, **own}


def compute_deadline_s(now_s: float, *, run_ends_s: float) -> float:
    """Compute when all installations that begin now must have ended. Pure."""
    return min(run_ends_s, now_s + LIMIT_S)


def build_manager_environment(home: Path, manager: Manager) -> dict[str, str]:
    """Build the variables that keep a package manager within the run's folder. Pure."""
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


def _describe_limit(request: InstallRequest) -> str:
    if request.limit_s == LIMIT_S:
        return f"the {time_limit(LIMIT_S)} that installations have"
    return f"the limit of the whole run, {time_limit(request.limit_s)}"


def _require_disk(request: InstallRequest, ended: ProgramExit) -> None:
    said = (line.message for line in ended.log)
    require_disk_was_free(said, request.project.workspace.folder, folder_mb=LIMITS.folder_mb)


def _require_own_folders(project: Project, wanted: Installation) -> None:
    """Require that no package put links where the agent reads or writes the run's files."""
    workspace, needed = project.workspace, {wanted.folder, project.working_dir}
    with contextlib.suppress(RuntimeError):  # links in a circle
        are_ours = all(workspace.contains(folder) and folder.is_dir() for folder in needed)
        if are_ours and not any(map(Path.is_symlink, workspace.folder.iterdir())):
            return
    message = "Installing the packages removed a folder of the run, or put a link in its place."
    raise CheckFailed(FailureKind.SCRIPT, message, {"code": "INSTALL"})


def _require_success(ended: ProgramExit, command: str, request: InstallRequest) -> None:
    """Require that the command succeeded; the suite is blamed for what it did."""
    if ended.timed_out:
        message = f"Installing the packages with `{command}` did not end within "
        raise CheckFailed(
            FailureKind.TIMEOUT,
            f"{message}{_describe_limit(request)}.",
            {"code": "INSTALL", "limitSeconds": request.limit_s},
        )
    if ended.out_of_memory:
        message = f"Installing the packages with `{command}` used more memory than its limit of "
        raise CheckFailed(FailureKind.OUT_OF_MEMORY, f"{message}{LIMITS.memory_mb} MB.")
    if ended.exit_code != 0:
        how = f"exit code {ended.exit_code}" if ended.signal is None else f"signal {ended.signal}"
        why = describe_last_error(ended.log)
        message = f"Installing the packages with `{command}` ended with {how}{why}."
        raise CheckFailed(FailureKind.SCRIPT, message)


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
"""Bun closes inherited descriptors; while it runs, a named pipe leads to ours."""


class Dependencies:
    """Shared by all runs of an agent."""

    def __init__(self, installer: Installer, packages: AsyncPackageCache) -> None:
        self._installer = installer
        self._packages_cache = packages

    @asynccontextmanager
    async def of(self, request: InstallRequest) -> AsyncIterator[dict[str, str]]:
        """Provide packages in the project's folder for the block.

        Yield the variables for a test command that uses the package manager.

        Raises:
            CheckFailed: they cannot be installed.
            OSError: the disk refuses it, or a process cannot be started.
        """
        try:
            wanted = await asyncio.to_thread(request.plan_installation)
        except UnknownManagerError as problem:
            raise CheckFailed(FailureKind.SCRIPT, str(problem)) from problem
        async with self._provide_tool(request, wanted), self._provide_packages(request, wanted):
            yield build_manager_environment(request.project.home, wanted.tool.manager)

    @asynccontextmanager
    async def _provide_tool(
        self, request: InstallRequest, wanted: Installation
    ) -> AsyncIterator[None]:
        """Provide the package manager as a program, where the runtime lacks it."""
        if wanted.tool.package is None:
            yield
            return
        only = plan_tool(wanted)
        async with self._lend(request, only, await self._borrow(request, only)) as modules:
            found = build_programs(wanted.tool, modules)
            await asyncio.to_thread(add_programs, request.project, found)
            yield

    @asynccontextmanager
    async def _provide_packages(
        self, request: InstallRequest, wanted: Installation
    ) -> AsyncIterator[None]:
        if wanted.in_place_because is not None:
            request.log.note(f"The packages are installed in place: {wanted.in_place_because}.")
            await self._installer.install(request, wanted, wanted.folder)
            yield
            return
        borrowed = await self._borrow(request, wanted)
        if borrowed is not None:
            request.log.note("The packages were installed before, and are used again.")
        async with self._lend(request, wanted, borrowed) as modules:
            await asyncio.to_thread(link_packages, modules, wanted.folder)
            yield

    @asynccontextmanager
    async def _lend(
        self, request: InstallRequest, wanted: Installation, before: BorrowedPackages | None
    ) -> AsyncIterator[Path]:
        """Lend packages that were installed before, or install them; take them back at the end."""
        borrowed = before or await self._install_and_keep(request, wanted)
        try:
            yield borrowed.modules
        finally:
            await self._packages_cache.give_back(borrowed)

    async def _borrow(
        self, request: InstallRequest, wanted: Installation
    ) -> BorrowedPackages | None:
        """Borrow packages that were installed before. None: there are none, or not wanted."""
        if request.spec.refresh_cache:
            return None
        key = await asyncio.to_thread(request.key, wanted)
        return await self._packages_cache.borrow(key)

    async def _install_and_keep(
        self, request: InstallRequest, wanted: Installation
    ) -> BorrowedPackages:
        key = await asyncio.to_thread(request.key, wanted)
        place = request.project.workspace.folder / "install"
        await asyncio.to_thread(_copy_inputs, wanted, place)
        await self._installer.install(request, wanted, place)
        modules = place / "node_modules"
        if modules.is_symlink() or not modules.is_dir():
            raise CheckFailed(FailureKind.SCRIPT, _describe_empty_install(wanted))
        return await self._packages_cache.keep(key, place)


def plan_tool(wanted: Installation) -> Installation:
    """Plan the installation of the package manager itself, in a separate folder. Pure.

    Of the suite's settings it uses only .npmrc, so suites with the same one share it.
    """
    package = wanted.tool.package or ""
    # Bun's own install script fetches its program, so scripts run even if the suite forbids them.
    quietly = ("--no-save", "--no-audit", "--no-fund", "--ignore-scripts=false")
    install = ("npm", "install", "--prefix=.", *quietly, package)
    return msgspec.structs.replace(
        wanted,
        tool=Tool(manager=Manager.NPM, package=wanted.tool.package, install=install),
        command=None,
        inputs=tuple(name for name in wanted.inputs if name == ".npmrc"),
        in_place_because=None,
    )


def build_programs(tool: Tool, modules: Path) -> dict[str, str]:
    """Build shell scripts that start a package manager. Pure."""
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


def _describe_empty_install(wanted: Installation) -> str:
    return f"Installing the packages with {wanted.tool.command} left no folder node_modules."


_UNREACHABLE: Final = re.compile(
    r"\b(ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH"
    r"|ERR_SOCKET_TIMEOUT|ConnectionRefused|FailedToOpenSocket)\b"
)
"""The errors of npm, pnpm, yarn and Bun when a registry does not answer."""
_ASKED_HOST: Final = re.compile(r"(?:https?://|(?:ENOTFOUND|EAI_AGAIN) )([\w.-]+)")
_PUBLIC_REGISTRY: Final = re.compile(r"registry\.(?:npm|yarn)[a-z]+\.(?:org|com)")
"""The default registries of package managers."""
_NAMES_A_REGISTRY: Final = re.compile(r"registry|proxy", re.IGNORECASE)


class RegistryUnreachableError(MachineError):
    """Packages cannot be downloaded here now, which is no suite's fault."""


def is_registry_unreachable(said: Iterable[str], agents: Mapping[str, str]) -> bool:
    """Whether an installation failed because a default registry, or the agent's proxy, was down.

    `agents`: the agent's own environment, which may name proxies. Any other host in the output was
    named by the suite, in its lock file or by its packages.
    """
    of_that = [line for line in said if _UNREACHABLE.search(line) or "request to " in line]
    hosts = {host for line in of_that for host in _ASKED_HOST.findall(line)}
    proxies = {urlsplit(value).hostname for value in agents.values()}
    others = [host for host in hosts - proxies if not _PUBLIC_REGISTRY.fullmatch(host)]
    return any(map(_UNREACHABLE.search, of_that)) and not others


def names_a_registry(names_or_settings: Iterable[str]) -> bool:
    """Whether a suite itself names a registry or a proxy."""
    return any(map(_NAMES_A_REGISTRY.search, names_or_settings))


_DISK_FULL: Final = re.compile(r"\bENOSPC\b|no space left on device", re.IGNORECASE)
_MB: Final = 1024 * 1024
_FREE_FILES: Final = 200_000
"""The number of files that a package manager may have written, and removed when it failed."""


def require_disk_was_free(said: Iterable[str], folder: Path, *, folder_mb: int) -> None:
    """Require that a failed run did not fail because of a full disk; it blocks.

    A failed run removes what it wrote, so up to the `folder_mb` that it was allowed may be free
    again by now. If more is free than that, the disk cannot have been full.

    Raises:
        FullDiskError: the output says that the disk was full, and it may have been.
    """
    if not any(_DISK_FULL.search(text) for text in said):
        return
    disk = os.statvfs(folder)
    free_mb = disk.f_bavail * disk.f_frsize / _MB
    # File systems without a number of files say that there are none.
    if free_mb < folder_mb or (disk.f_files and disk.f_favail < _FREE_FILES):
        raise FullDiskError(
            f"The disk of {folder.parent} was full: it has {free_mb:.0f} MB and "
            f"{disk.f_favail} files left after a suite's run, which may take {folder_mb} MB."
        )
