"""Installs a suite's packages, or finds that it was done before."""

import asyncio
import shlex
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from contract.result import FailureKind
from runners.kit.failures import CheckFailed
from runners.kit.suites.installation import Installation
from runners.kit.suites.installing import Installer, manager_environment
from runners.kit.suites.lending import Lending
from runners.kit.suites.node_modules import Borrowed, link_packages
from runners.kit.suites.order import Order
from runners.kit.suites.package_manager import Manager, Tool, UnknownManagerError
from runners.kit.suites.project import add_programs

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


class Dependencies:
    """Shared by all runs of an agent."""

    def __init__(self, installer: Installer, lending: Lending) -> None:
        self._installer = installer
        self._lending = lending

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
        async with self._lent(order, only, await self._borrowed(order, only)) as modules:
            found = programs(wanted.tool, modules)
            await asyncio.to_thread(add_programs, order.project, found)
            yield

    @asynccontextmanager
    async def _packages(self, order: Order, wanted: Installation) -> AsyncIterator[None]:
        if wanted.in_place_because is not None:
            order.log.note(f"The packages are installed in place: {wanted.in_place_because}.")
            await self._installer.install(order, wanted, wanted.folder)
            yield
            return
        borrowed = await self._borrowed(order, wanted)
        if borrowed is not None:
            order.log.note("The packages were installed before, and are used again.")
        async with self._lent(order, wanted, borrowed) as modules:
            await asyncio.to_thread(link_packages, modules, wanted.folder)
            yield

    @asynccontextmanager
    async def _lent(
        self, order: Order, wanted: Installation, before: Borrowed | None
    ) -> AsyncIterator[Path]:
        """What was installed before, or is now; it is given back after the block."""
        borrowed = before or await self._fresh(order, wanted)
        try:
            yield borrowed.modules
        finally:
            await self._lending.give_back(borrowed)

    async def _borrowed(self, order: Order, wanted: Installation) -> Borrowed | None:
        """What was installed before. None: nothing, or it is not to be used."""
        if order.spec.refresh_cache:
            return None
        key = await asyncio.to_thread(order.key, wanted)
        return await self._lending.borrow(key)

    async def _fresh(self, order: Order, wanted: Installation) -> Borrowed:
        key = await asyncio.to_thread(order.key, wanted)
        place = order.project.workspace.folder / "install"
        await asyncio.to_thread(_copy_inputs, wanted, place)
        await self._installer.install(order, wanted, place)
        modules = place / "node_modules"
        if modules.is_symlink() or not modules.is_dir():
            raise CheckFailed(FailureKind.SCRIPT, _nothing_installed(wanted))
        return await self._lending.keep(key, place)


def tool_alone(wanted: Installation) -> Installation:
    """The installation of the package manager, in a place of its own. Pure.

    It hears of the suite's registry alone, so others may use it who have the same one.
    """
    package = wanted.tool.package or ""
    # Bun's own script fetches its program, whatever the suite wants of its packages' scripts.
    quietly = ("--no-save", "--no-audit", "--no-fund", "--ignore-scripts=false")
    install = ("npm", "install", "--prefix=.", *quietly, package)
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


def _nothing_installed(wanted: Installation) -> str:
    return f"Installing the packages with {wanted.tool.command} left no folder node_modules."
