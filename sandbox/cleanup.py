"""Removes what killed agents left: processes, users' files, folders.

A small process that outlives the agent by a moment, and clears away its scripts.

Where the agent is the first process of its container, the system itself ends all others with it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

from sandbox.child_io import open_pipe
from sandbox.processes import (
    SLIPPERY_ROUNDS,
    all_pids,
    chase,
    is_in_a_container,
    is_of_a_dead_agent,
    look_up,
    send,
    tag_of,
    user_of,
)
from sandbox.spawn import can_have_own_users, end_user, find_tools
from sandbox.users import SLOT_UIDS, SlotUsers
from sandbox.workspace import PREFIXES, UNLOCKED, is_deserted, remove_folder

_ROUNDS: Final = 100
_PAUSE_S: Final = 0.02
_SURE_LOOKS: Final = 3
"""So many in a row have to find nothing, where nobody looks again."""
_MAKING_S: Final = 60.0
"""Longer than any agent takes from making a folder to locking it."""


def sweep_processes(users: SlotUsers | None, *, looks: int = 1) -> None:
    """End what scripts of dead agents have left running; it blocks.

    Args:
        users: the pool, when runs have users of their own.
        looks: so many in a row have to find nothing. With more than one, those are chased as well
            that change their number faster than a look takes, and are in none.
    """
    free: AbstractSet[int] = set() if users is None else _idle_users(users)

    def is_stale(pid: int) -> bool:
        return _is_stale(pid, free)

    quiet = 0
    for rounds in range(_ROUNDS):
        stale = [pid for pid in all_pids() if is_stale(pid)]
        for pid in stale:
            send(pid, signal.SIGKILL, when=is_stale)
        quiet = 0 if stale or (looks > 1 and chase(is_stale)) else quiet + 1
        if quiet == looks:
            break
        if rounds >= SLIPPERY_ROUNDS:
            _end_slippery(stale, free, is_stale)
        time.sleep(_PAUSE_S)
    for uid in free:
        if users is not None:
            users.give_back(uid)


def sweep_folders(within: Path, prefixes: Iterable[str] = PREFIXES) -> None:
    """Remove the folders of runs whose agent is no more, and its own; it blocks."""
    for prefix in prefixes:
        for folder in within.glob(f"{prefix}*"):
            if is_deserted(folder):
                remove_folder(folder)
        for folder in within.glob(f"{UNLOCKED}{prefix}*"):
            if _is_old(folder) and is_deserted(folder):
                remove_folder(folder)


def _is_old(folder: Path) -> bool:
    try:
        return time.time() - folder.lstat().st_mtime > _MAKING_S
    except OSError:
        return False


def _idle_users(users: SlotUsers) -> set[int]:
    """Users of the pool with processes, though no agent has lent them out; locked until we end."""
    seen = {user_of(pid) for pid in all_pids()}
    return {uid for uid in SLOT_UIDS if uid in seen and users.lock(uid)}


def _end_slippery(
    stale: list[int], free: AbstractSet[int], is_stale: Callable[[int], bool]
) -> None:
    """End those that change their number faster than we look."""
    theirs = {uid for pid in stale if (uid := user_of(pid)) is not None}
    for uid in theirs & free:
        if all(is_stale(pid) for pid in all_pids() if user_of(pid) == uid):
            end_user(find_tools(), uid)
    if os.geteuid() in theirs:
        chase(is_stale)


def _is_stale(pid: int, free: AbstractSet[int]) -> bool:
    tag, seen = tag_of(pid), look_up(pid)
    if tag is None or seen is None or seen.has_ended:
        return False
    uid = user_of(pid)
    if uid is None:
        return False
    if uid in free:
        return is_of_a_dead_agent(tag) or not is_in_a_container(pid)
    return uid == os.geteuid() and is_of_a_dead_agent(tag)


def main() -> None:
    """Sweep on behalf of an agent that was killed; the arguments are the folders with runs."""
    users = SlotUsers() if can_have_own_users() else None
    sweep_processes(users, looks=_SURE_LOOKS)
    for within in sys.argv[1:]:
        sweep_folders(Path(within))


_SHELL: Final = "/bin/sh"
_WAIT_THEN_SWEEP: Final = 'read _; exec "$@"'
"""Reading ends when nobody is left who could write."""
_ROOT: Final = str(Path(__file__).parents[1])


class Watchdog:
    """Waits for the agent's end in a shell, which costs less than a megabyte, and sweeps then."""

    def __init__(self, folders: list[Path]) -> None:
        """`folders`: those in which runs have theirs.

        Raises:
            OSError: it cannot be started.
        """
        waits, self._ours = open_pipe()
        try:
            self._pid = _start(waits, [str(folder) for folder in folders])
        finally:
            os.close(waits)

    def close(self) -> None:
        """There is nothing to sweep."""
        os.kill(self._pid, signal.SIGKILL)
        os.close(self._ours)
        os.waitpid(self._pid, 0)


def _start(waits: int, folders: list[str]) -> int:
    sweep = [sys.executable, "-m", "sandbox.cleanup", *folders]
    path = os.pathsep.join((_ROOT, *filter(None, sys.path)))
    return os.posix_spawn(
        _SHELL,
        [_SHELL, "-c", _WAIT_THEN_SWEEP, "after-death", *sweep],
        {"PATH": os.defpath, "PYTHONPATH": path},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, waits, 0),
            *((os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)),
        ],
        setsid=True,
    )


if __name__ == "__main__":
    main()
