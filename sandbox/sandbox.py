"""Runs every script in its own processes, as its own user, with nothing inherited or left."""

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
from sandbox.limits import LimitMonitor, require_free_disk
from sandbox.memory import MemoryReservation, MemoryReservations
from sandbox.processes import ProcessTree, RunTags
from sandbox.program import Limits, Program
from sandbox.spawn import (
    Identity,
    Spawned,
    SystemTools,
    build_command,
    can_have_own_users,
    close_pipes,
    find_tools,
    kill_user_processes,
    require_executable,
    require_variables,
    spawn,
)
from sandbox.system_calls import adopt_orphans, hide_memory
from sandbox.users import SlotUsers, grant_folder, remove_leftovers, revoke_folder
from sandbox.workspace import SHARED_MEMORY, Workspace

__all__ = ("Child", "Limits", "Program", "Sandbox")

_THREADS: Final = 4
_CLEARING_THREADS: Final = 2
"""Separate threads, as removing very many files takes seconds, and no run may wait for that."""
_MEMORY_WAIT_S: Final = 5.0
"""Another run may end meanwhile; after that, the job is better off with another agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lease:
    """What a program has to itself while it runs: a folder, a user, a tag and memory."""

    folder: Path
    owner: Workspace | None
    """The workspace that the folder belongs to. None: the folder is the program's only."""
    identity: Identity
    reservation: MemoryReservation

    def begin(self) -> None:
        """Give the folder to the program's user, if it has one of its own; it blocks."""
        if self.identity.uid is not None:
            grant_folder(self.folder, self.identity.uid)
            self._note(self.identity.uid)

    def end(self) -> None:
        """Take the folder back; it blocks."""
        self._note(None)
        revoke_folder(self.folder)

    def _note(self, uid: int | None) -> None:
        if self.owner is not None:
            self.owner.user = uid


class Sandbox:
    """Starts programs, each as a user of its own where possible; an agent has one sandbox."""

    def __init__(self, within: Path | None = None) -> None:
        """Prepare this process for untrusted children, and sweep what killed agents left.

        `within`: where runs have their folders. None: the system's temporary folder.

        Raises:
            OSError: the system lacks what is needed; the message names it.
        """
        self._folder = Path(tempfile.gettempdir()) if within is None else within
        self._tools = _prepare()
        self._users = SlotUsers() if can_have_own_users() else None
        """None: scripts run as the agent's own user."""
        self._tags = RunTags()
        self._memory = MemoryReservations()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="sandbox")
        self._cleanup_threads = ThreadPoolExecutor(_CLEARING_THREADS, thread_name_prefix="clearing")
        self._children: dict[int, Child] = {}
        """The running children by their tags."""
        self._tags_in_use: set[int] = set()
        """Tags of runs, from before their start: no other run may take over their processes."""
        self._under_way: set[asyncio.Future[None]] = set()
        """Work that is completed even if whoever waits for it is cancelled."""
        self._watchdog: Watchdog | None = None
        """None: no program was started yet, so there is nothing to sweep."""
        sweep_processes(self._users)
        for folder in (self._folder, SHARED_MEMORY):
            self._cleanup_threads.submit(sweep_folders, folder)

    @property
    def free_mb(self) -> float:
        """The memory that is neither in use nor reserved, in MB."""
        return self._memory.free_mb

    async def start(
        self, program: Program, *, owner: Workspace | None = None, waits: bool = False
    ) -> Child:
        """Start a program in a folder to itself: that of `owner`, or its own working directory.

        Only one program of an owner may run at a time, as the folder belongs to its user. With
        `waits`, memory is reserved later, by `Child.reserve_memory`, when its job comes.

        Raises:
            CheckFailed: of kind SCRIPT: its variables are too large, or its folders too deep.
            OSError: it cannot be started, which is our fault.
        """
        require_executable(program)
        require_variables(program.env)
        self._watchdog = self._watchdog or Watchdog([self._folder, SHARED_MEMORY])
        lease = await self._acquire(program, owner, 0 if waits else program.limits.expected_mb)
        return await self._begin(program, lease)

    async def _acquire(self, program: Program, owner: Workspace | None, needed_mb: int) -> _Lease:
        folder = program.folder if owner is None else owner.folder
        require_free_disk(folder)
        reservation = await self._memory.reserve(needed_mb, wait_s=_MEMORY_WAIT_S)
        try:
            identity = Identity(uid=self._user(), tag=self._tags.next_tag())
        except BaseException:
            reservation.release()
            raise
        return _Lease(folder=folder, owner=owner, identity=identity, reservation=reservation)

    async def _begin(self, program: Program, lease: _Lease) -> Child:
        ready = self._run_to_completion(self._run_in_thread(lease.begin))
        try:
            await asyncio.shield(ready)
            self._tags_in_use.add(lease.identity.tag)
            spawned = spawn(build_command(self._tools, program, lease.identity), program)
            child = _make_child(
                spawned, program.limits, self._child_context(spawned, program, lease)
            )
        except BaseException:
            self._tags_in_use.discard(lease.identity.tag)
            await asyncio.shield(self._run_to_completion(self._undo(ready, lease)))
            raise
        self._children[lease.identity.tag] = child
        return child

    async def close(self) -> None:
        """Kill all programs that still run.

        Raises:
            OSError: a process cannot be killed; all others are.
        """
        kills = (child.kill() for child in tuple(self._children.values()))
        ends = await asyncio.gather(*kills, return_exceptions=True)
        while self._under_way:
            await asyncio.wait(self._under_way)
        for threads in (self._threads, self._cleanup_threads):
            threads.shutdown(wait=True)
        if self._watchdog is not None:
            self._watchdog.close()
            self._watchdog = None
        for end in ends:
            if isinstance(end, BaseException):
                raise end

    def _user(self) -> int | None:
        return None if self._users is None else self._users.borrow()

    def _child_context(self, spawned: Spawned, program: Program, lease: _Lease) -> ChildContext:
        tag = lease.identity.tag

        async def release() -> None:
            self._children.pop(tag, None)
            self._tags_in_use.discard(tag)
            await self._release(lease)

        tree = ProcessTree(
            spawned.pid,
            lease.identity,
            is_live=self._tags_in_use.__contains__,
            end_user=lambda uid: kill_user_processes(self._tools, uid),
        )
        return ChildContext(
            tree=tree,
            watch=LimitMonitor(
                tree, program.limits, lease.folder, on_usage=lease.reservation.record_use
            ),
            threads=self._threads,
            reserve=partial(
                lease.reservation.grow, program.limits.expected_mb, wait_s=_MEMORY_WAIT_S
            ),
            release=release,
        )

    async def _undo(self, ready: asyncio.Future[None], lease: _Lease) -> None:
        await asyncio.wait((ready,))  # or it would grant what is being released
        await self._release(lease)

    async def _release(self, lease: _Lease) -> None:
        lease.reservation.release()
        uid = lease.identity.uid
        if self._users is None or uid is None:
            return

        def clear() -> None:
            lease.end()
            remove_leftovers(uid, self._tools.setpriv)

        try:
            await asyncio.get_running_loop().run_in_executor(self._cleanup_threads, clear)
        finally:
            self._users.give_back(uid)

    def _run_to_completion(self, work: Awaitable[None]) -> asyncio.Future[None]:
        future = asyncio.ensure_future(work)
        self._under_way.add(future)
        future.add_done_callback(self._forget)
        return future

    def _forget(self, future: asyncio.Future[None]) -> None:
        self._under_way.discard(future)
        if not future.cancelled():
            future.exception()  # whoever still waits gets it; without a waiter it is ignored

    async def _run_in_thread(self, function: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, function)


def _prepare() -> SystemTools:
    tools = find_tools()
    adopt_orphans()
    hide_memory()
    return tools


def _make_child(spawned: Spawned, limits: Limits, context: ChildContext) -> Child:
    try:
        return Child(spawned, limits, context)
    except OSError:  # out of descriptors: nobody could watch it
        close_pipes(spawned)
        context.tree.kill()
        context.tree.reap()
        raise
