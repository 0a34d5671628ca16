"""Where every script runs: its own processes, its own user, nothing inherited, nothing left."""

import asyncio
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from runners.kit.after_death import AfterDeath
from runners.kit.child import Child, Surroundings
from runners.kit.folder_owner import give_folder, take_folder
from runners.kit.leftovers import remove_leftovers
from runners.kit.process_limits import (
    Identity,
    can_have_own_users,
    command,
    end_user,
    find_tools,
    require,
)
from runners.kit.process_tree import ProcessTree
from runners.kit.program import Ended, Limits, Program
from runners.kit.run_tags import RunTags
from runners.kit.slot_users import SlotUsers
from runners.kit.spawning import Spawned, spawn
from runners.kit.sweeping import sweep_folders, sweep_processes
from runners.kit.system_calls import adopt_orphans, hide_memory
from runners.kit.watch import Watch, require_room
from runners.kit.workspace import Workspace

__all__ = ("Child", "Ended", "Limits", "Program", "Sandbox")

_THREADS: Final = 4


class Sandbox:
    """One per agent process: starts programs, and gives each a user of its own where it may."""

    def __init__(self, within: Path | None = None) -> None:
        """Prepare this process for children that nobody trusts, and clear away old ones.

        Args:
            within: where runs have their folders. None: the system's folder for temporary files.

        Raises:
            OSError: the system lacks what is needed; the sentence names it.
        """
        self._tools = find_tools()
        adopt_orphans()
        hide_memory()
        self._users = SlotUsers() if can_have_own_users() else None
        """None: scripts run as the agent's own user."""
        self._tags = RunTags()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="sandbox")
        self._children: dict[int, Child] = {}
        """By tag."""
        folder = Path(tempfile.gettempdir()) if within is None else within
        sweep_processes(self._users)
        self._threads.submit(sweep_folders, folder)
        self._folder = folder
        self._after_death: AfterDeath | None = None
        """None: nothing was started that could be left behind."""

    async def start(self, program: Program, *, owner: Workspace | None = None) -> Child:
        """Start a program, which has a folder to itself: that of `owner`, or its own.

        One program of an owner runs at a time: the folder is its user's.

        Raises:
            OSError: it cannot be started, and that is our fault.
        """
        require(program)
        self._after_death = self._after_death or AfterDeath([self._folder])
        folder = program.folder if owner is None else owner.folder
        require_room(folder)
        users = self._users
        identity = Identity(uid=users.borrow() if users else None, tag=self._tags.make())
        try:
            await self._aside(lambda: _lend(folder, identity))
            spawned = spawn(command(self._tools, program, identity), program)
            around = self._around(spawned, program, identity, folder)
            child = self._child(spawned, program, around)
        except BaseException:
            await self._take_back(folder, identity)
            raise
        self._children[identity.tag] = child
        return child

    def _child(self, spawned: Spawned, program: Program, around: Surroundings) -> Child:
        try:
            return Child(spawned, program.limits, around)
        except OSError:  # out of descriptors: nobody could watch it
            around.tree.kill()
            around.tree.reap()
            raise

    async def close(self) -> None:
        """End all that still runs."""
        for child in tuple(self._children.values()):
            await child.kill()
        self._threads.shutdown(wait=True)
        if self._after_death is not None:
            self._after_death.close()

    def _around(
        self, spawned: Spawned, program: Program, identity: Identity, folder: Path
    ) -> Surroundings:
        async def release() -> None:
            self._children.pop(identity.tag, None)
            await self._take_back(folder, identity)

        tree = ProcessTree(
            spawned.pid,
            identity,
            is_live=self._children.__contains__,
            end_user=lambda uid: end_user(self._tools, uid),
        )
        return Surroundings(
            tree=tree,
            watch=Watch(tree, program.limits, folder),
            threads=self._threads,
            release=release,
        )

    async def _take_back(self, folder: Path, identity: Identity) -> None:
        uid = identity.uid
        if self._users is None or uid is None:
            return

        def clear() -> None:
            take_folder(folder)
            remove_leftovers(uid, self._tools.setpriv)

        try:
            await self._aside(clear)
        finally:
            self._users.give_back(uid)

    async def _aside(self, function: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, function)


def _lend(folder: Path, identity: Identity) -> None:
    if identity.uid is not None:
        give_folder(folder, identity.uid)
