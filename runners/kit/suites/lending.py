"""Kept packages, lent to runs: what a run was being lent when it was cancelled is given back."""

import asyncio
import errno
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from contract.result import FailureKind
from runners.kit.failures import CheckFailed
from runners.kit.isolation.folder_owner import take_folder
from runners.kit.isolation.removal import remove_folder
from runners.kit.suites.node_modules import Borrowed, NodeModules
from runners.kit.suites.taking_over import UnfitPackagesError

_Lent = TypeVar("_Lent", Borrowed, Borrowed | None)
_Any = TypeVar("_Any")
_TOO_DEEP: Final = "Installing the packages left folders in each other without end."


class Lending:
    """Shared by all runs of an agent; threads do the work."""

    def __init__(self, kept: NodeModules) -> None:
        self._kept = kept

    async def borrow(self, key: str) -> Borrowed | None:
        """The packages with this key. None: there are none.

        Raises:
            OSError: the disk refuses it.
        """
        return await self._lent(partial(self._kept.borrow, key))

    async def keep(self, key: str, place: Path) -> Borrowed:
        """Take over what was installed in a folder, and lend it; the folder goes.

        Raises:
            CheckFailed: what was installed cannot be kept.
            OSError: the disk refuses it.
        """
        return await self._lent(partial(self._taken, key, place))

    async def give_back(self, borrowed: Borrowed) -> None:
        """The run is over."""
        await asyncio.shield(_in_a_thread(partial(self._kept.give_back, borrowed)))

    async def _lent(self, lend: Callable[[], _Lent]) -> _Lent:
        under_way = _in_a_thread(lend)
        try:
            return await asyncio.shield(under_way)
        except asyncio.CancelledError:
            under_way.add_done_callback(self._give_back_unused)
            # Else the run's folder would be removed while packages are taken from there.
            await asyncio.wait((under_way,))
            raise

    def _give_back_unused(self, lent: asyncio.Future[_Lent]) -> None:
        if lent.cancelled() or lent.exception() is not None:
            return
        borrowed = lent.result()
        if borrowed is not None:
            _in_a_thread(partial(self._kept.give_back, borrowed))

    def _taken(self, key: str, place: Path) -> Borrowed:
        # Its user could have shut it, or made it such that only its owner takes things out.
        take_folder(place)
        try:
            return self._kept.keep(key, place / "node_modules")
        except UnfitPackagesError as problem:
            raise CheckFailed(FailureKind.SCRIPT, str(problem)) from problem
        except RecursionError as problem:
            raise CheckFailed(FailureKind.SCRIPT, _TOO_DEEP) from problem
        except OSError as problem:
            if problem.errno == errno.ENAMETOOLONG:
                raise CheckFailed(FailureKind.SCRIPT, _TOO_DEEP) from problem
            raise
        finally:
            remove_folder(place)


def _in_a_thread(work: Callable[[], _Any]) -> asyncio.Future[_Any]:
    """Unlike a task it is not given up when the loop's tasks are cancelled."""
    return asyncio.get_running_loop().run_in_executor(None, work)
