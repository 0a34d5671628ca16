"""Where every script runs: its own processes, its own user, nothing inherited, nothing left."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from sandbox.child import Child, ChildContext
from sandbox.cleanup import Watchdog, sweep_folders, sweep_processes
from sandbox.limits import Watch, require_room
from sandbox.memory import MemoryPromises, MemoryReservation
from sandbox.processes import ProcessTree, RunTags
from sandbox.program import Ended, Limits, Program
from sandbox.spawn import (
    Identity,
    Spawned,
    Tools,
    can_have_own_users,
    close_pipes,
    command,
    end_user,
    find_tools,
    require,
    require_variables,
    spawn,
)
from sandbox.system_calls import adopt_orphans, hide_memory
from sandbox.users import SlotUsers, give_folder, remove_leftovers, take_folder
from sandbox.workspace import SHARED_MEMORY, Workspace

__all__ = ("Child", "Ended", "Limits", "Program", "Sandbox")

_THREADS: Final = 4
_CLEARING_THREADS: Final = 2
"""Apart from the others: to remove very many files takes seconds, and no run is to wait for it."""
_MEMORY_WAIT_S: Final = 5.0
"""Another run may end in that time; longer, and the job is better off with another agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lease:
    """What a program has to itself for as long as it runs."""

    folder: Path
    owner: Workspace | None
    """Whose folder it is. None: nobody has said."""
    identity: Identity
    promise: MemoryReservation

    def begin(self) -> None:
        """Let its user work there; it blocks. The agent's own user can anyhow."""
        if self.identity.uid is not None:
            give_folder(self.folder, self.identity.uid)
            self._note(self.identity.uid)

    def end(self) -> None:
        """Shut the folder; it blocks."""
        self._note(None)
        take_folder(self.folder)

    def _note(self, uid: int | None) -> None:
        if self.owner is not None:
            self.owner.user = uid


class Sandbox:
    """One per agent process: starts programs, and gives each a user of its own where it may."""

    def __init__(self, within: Path | None = None) -> None:
        """Prepare this process for children that nobody trusts, and clear away old ones.

        `within`: where runs have their folders. None: the system's folder for temporary files.

        Raises:
            OSError: the system lacks what is needed; the sentence names it.
        """
        self._folder = Path(tempfile.gettempdir()) if within is None else within
        self._tools = _prepare()
        self._users = SlotUsers() if can_have_own_users() else None
        """None: scripts run as the agent's own user."""
        self._tags = RunTags()
        self._memory = MemoryPromises()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="sandbox")
        self._clearing = ThreadPoolExecutor(_CLEARING_THREADS, thread_name_prefix="clearing")
        self._children: dict[int, Child] = {}
        """By tag."""
        self._tags_in_use: set[int] = set()
        """From before a program's start: one that ends meanwhile must not take it for a stray."""
        self._under_way: set[asyncio.Future[None]] = set()
        """What goes on to its end, though whoever waited for it has given up."""
        self._after_death: Watchdog | None = None
        """None: nothing was started that could be left behind."""
        sweep_processes(self._users)
        for folder in (self._folder, SHARED_MEMORY):
            self._clearing.submit(sweep_folders, folder)

    @property
    def free_mb(self) -> float:
        """How much memory nobody uses, and nobody was promised."""
        return self._memory.free_mb

    async def start(
        self, program: Program, *, owner: Workspace | None = None, waits: bool = False
    ) -> Child:
        """Start a program, which has a folder to itself: that of `owner`, or its own.

        One program of an owner runs at a time: the folder is its user's. One that `waits` for its
        job is promised no memory: `Child.expect_job` sees to that.

        Raises:
            CheckFailed: of kind SCRIPT: its variables, or what ran there before, stand in the way.
            OSError: it cannot be started, and that is our fault.
        """
        require(program)
        require_variables(program.env)
        self._after_death = self._after_death or Watchdog([self._folder, SHARED_MEMORY])
        stay = await self._stay(program, owner, 0 if waits else program.limits.expected_mb)
        return await self._begin(program, stay)

    async def _stay(self, program: Program, owner: Workspace | None, needed_mb: int) -> _Lease:
        folder = program.folder if owner is None else owner.folder
        require_room(folder)
        promise = await self._memory.make(needed_mb, wait_s=_MEMORY_WAIT_S)
        try:
            identity = Identity(uid=self._user(), tag=self._tags.make())
        except BaseException:
            promise.end()
            raise
        return _Lease(folder=folder, owner=owner, identity=identity, promise=promise)

    async def _begin(self, program: Program, stay: _Lease) -> Child:
        ready = self._to_its_end(self._aside(stay.begin))
        try:
            await asyncio.shield(ready)
            self._tags_in_use.add(stay.identity.tag)
            spawned = spawn(command(self._tools, program, stay.identity), program)
            child = _child(spawned, program.limits, self._around(spawned, program, stay))
        except BaseException:
            self._tags_in_use.discard(stay.identity.tag)
            await asyncio.shield(self._to_its_end(self._undo(ready, stay)))
            raise
        self._children[stay.identity.tag] = child
        return child

    async def close(self) -> None:
        """End all that still runs.

        Raises:
            OSError: a process cannot be ended; all others are.
        """
        kills = (child.kill() for child in tuple(self._children.values()))
        ends = await asyncio.gather(*kills, return_exceptions=True)
        while self._under_way:
            await asyncio.wait(self._under_way)
        for threads in (self._threads, self._clearing):
            threads.shutdown(wait=True)
        if self._after_death is not None:
            self._after_death.close()
            self._after_death = None
        for end in ends:
            if isinstance(end, BaseException):
                raise end

    def _user(self) -> int | None:
        return None if self._users is None else self._users.borrow()

    def _around(self, spawned: Spawned, program: Program, stay: _Lease) -> ChildContext:
        tag = stay.identity.tag

        async def release() -> None:
            self._children.pop(tag, None)
            self._tags_in_use.discard(tag)
            await self._take_back(stay)

        tree = ProcessTree(
            spawned.pid,
            stay.identity,
            is_live=self._tags_in_use.__contains__,
            end_user=lambda uid: end_user(self._tools, uid),
        )
        return ChildContext(
            tree=tree,
            watch=Watch(tree, program.limits, stay.folder, tell=stay.promise.note),
            threads=self._threads,
            claim=partial(stay.promise.grow, program.limits.expected_mb, wait_s=_MEMORY_WAIT_S),
            release=release,
        )

    async def _undo(self, ready: asyncio.Future[None], stay: _Lease) -> None:
        await asyncio.wait((ready,))  # or it would give what is being taken back
        await self._take_back(stay)

    async def _take_back(self, stay: _Lease) -> None:
        stay.promise.end()
        uid = stay.identity.uid
        if self._users is None or uid is None:
            return

        def clear() -> None:
            stay.end()
            remove_leftovers(uid, self._tools.setpriv)

        try:
            await asyncio.get_running_loop().run_in_executor(self._clearing, clear)
        finally:
            self._users.give_back(uid)

    def _to_its_end(self, work: Awaitable[None]) -> asyncio.Future[None]:
        future = asyncio.ensure_future(work)
        self._under_way.add(future)
        future.add_done_callback(self._forget)
        return future

    def _forget(self, future: asyncio.Future[None]) -> None:
        self._under_way.discard(future)
        if not future.cancelled():
            future.exception()  # whoever waits is told; who gave up is not

    async def _aside(self, function: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, function)


def _prepare() -> Tools:
    tools = find_tools()
    adopt_orphans()
    hide_memory()
    return tools


def _child(spawned: Spawned, limits: Limits, around: ChildContext) -> Child:
    try:
        return Child(spawned, limits, around)
    except OSError:  # out of descriptors: nobody could watch it
        close_pipes(spawned)
        around.tree.kill()
        around.tree.reap()
        raise
