"""Where every script runs: its own processes, its own user, nothing inherited, nothing left."""

import asyncio
import contextlib
import os
import secrets
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from runners.kit.child import Child, Spawned, Surroundings
from runners.kit.child_pipes import open_pipe
from runners.kit.process_limits import Identity, can_have_own_users, command, find_tools
from runners.kit.process_tree import ProcessTree
from runners.kit.program import Ended, Limits, Program
from runners.kit.slot_users import SlotUsers, give_folder, take_folder
from runners.kit.system_calls import adopt_orphans, hide_memory
from runners.kit.workspace import Workspace

__all__ = ("Child", "Ended", "Limits", "Program", "Sandbox")

_THREADS: Final = 4
_TAGS: Final = 1 << 62
_OWN_SIGNALS: Final = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores these; a script is to feel them."""
_OOM_SCORE: Final = "800"
"""Where the system itself runs out of memory, it takes a script before the agent."""


class Sandbox:
    """One per agent process: starts programs, and gives each a user of its own where it may."""

    def __init__(self) -> None:
        """Prepare this process for having children that nobody trusts.

        Raises:
            OSError: the system lacks what is needed; the sentence names it.
        """
        self._tools = find_tools()
        adopt_orphans()
        hide_memory()
        self._users = SlotUsers() if can_have_own_users() else None
        """None: scripts run as the agent's own user."""
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="sandbox")
        self._children: set[Child] = set()

    async def start(self, program: Program, *, owner: Workspace | None = None) -> Child:
        """Start a program, which has its folder to itself (of `owner` if given).

        Raises:
            OSError: it cannot be started, and that is our fault.
        """
        _require(program)
        folder = program.folder if owner is None else owner.folder
        identity = Identity(
            uid=None if self._users is None else self._users.borrow(),
            tag=secrets.randbelow(_TAGS),
        )
        try:
            await self._give(folder, identity)
            spawned = _spawn(command(self._tools, program, identity), program)
        except BaseException:
            await self._release(folder, identity)
            raise
        return self._watched(spawned, program, identity, folder)

    async def close(self) -> None:
        """End all that still runs."""
        for child in tuple(self._children):
            await child.kill()
        self._threads.shutdown(wait=False)

    def _watched(
        self, spawned: Spawned, program: Program, identity: Identity, folder: Path
    ) -> Child:
        async def release() -> None:
            self._children.discard(child)
            await self._release(folder, identity)

        around = Surroundings(
            tree=ProcessTree(spawned.pid, identity, is_stray=lambda _: False),
            threads=self._threads,
            kill_at_once=None,
            release=release,
        )
        child = Child(spawned, program.limits, around)
        self._children.add(child)
        return child

    async def _give(self, folder: Path, identity: Identity) -> None:
        if (uid := identity.uid) is not None:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._threads, give_folder, folder, uid)

    async def _release(self, folder: Path, identity: Identity) -> None:
        if self._users is not None and identity.uid is not None:
            with contextlib.suppress(FileNotFoundError):
                take_folder(folder)
            self._users.give_back(identity.uid)


def _require(program: Program) -> None:
    binary = Path(program.argv[0])
    if not binary.is_absolute() or not os.access(binary, os.X_OK):
        raise FileNotFoundError(f"The program {binary} cannot be executed")
    if not program.folder.is_dir():
        raise FileNotFoundError(f"The folder {program.folder} is not there")


def _spawn(line: list[str], program: Program) -> Spawned:
    """Start it in a session of its own."""
    stdin, to_child = open_pipe()
    stdout, out = open_pipe()
    stderr, err = open_pipe()
    facts, fact = open_pipe() if program.facts_fd else (None, None)
    theirs = {0: stdin, 1: out, 2: err} | ({} if fact is None else {3: fact})
    try:
        pid = os.posix_spawn(
            line[0],
            line,
            program.env,
            file_actions=[(os.POSIX_SPAWN_DUP2, end, number) for number, end in theirs.items()],
            setsid=True,
            setsigmask=(),
            setsigdef=_OWN_SIGNALS,
        )
    except BaseException:
        for end in (to_child, stdout, stderr, *(() if facts is None else (facts,))):
            os.close(end)
        raise
    finally:
        for end in theirs.values():
            os.close(end)
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text(_OOM_SCORE)
    return Spawned(pid=pid, stdin=to_child, stdout=stdout, stderr=stderr, facts=facts)
