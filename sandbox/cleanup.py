"""Removes what killed agents left: processes, files of slot users, folders.

An agent's watchdog runs this module as a program when the agent has died. Where the agent is the
first process of its container, the kernel itself kills all others with it.
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
    EVASIVE_ROUNDS,
    all_pids,
    is_from_dead_agent,
    is_in_nested_namespace,
    kill_newest,
    read_process,
    read_tag,
    read_uid,
    send_signal,
)
from sandbox.spawn import can_have_own_users, find_tools, kill_user_processes
from sandbox.users import SLOT_UIDS, SlotUsers
from sandbox.workspace import PREFIXES, UNLOCKED, is_abandoned, remove_folder

_ROUNDS: Final = 100
_PAUSE_S: Final = 0.02
_QUIET_ROUNDS: Final = 3
"""How many rounds in a row have to find nothing where no later sweep follows."""
_MAKING_S: Final = 60.0
"""Longer than any agent takes between making a folder and locking it."""


def sweep_processes(users: SlotUsers | None, *, quiet_rounds: int = 1) -> None:
    """Kill the processes that scripts of dead agents left running; it blocks.

    Args:
        users: the pool of slot users. None: runs have no users of their own.
        quiet_rounds: how many rounds in a row have to find nothing. With more than one, processes
            that fork and exit faster than a round takes, and so appear in none, are killed too.
    """
    free: AbstractSet[int] = set() if users is None else _idle_users(users)

    def is_stale(pid: int) -> bool:
        return _is_stale(pid, free)

    quiet = 0
    for rounds in range(_ROUNDS):
        stale = [pid for pid in all_pids() if is_stale(pid)]
        for pid in stale:
            send_signal(pid, signal.SIGKILL, when=is_stale)
        quiet = 0 if stale or (quiet_rounds > 1 and kill_newest(is_stale)) else quiet + 1
        if quiet == quiet_rounds:
            break
        if rounds >= EVASIVE_ROUNDS:
            _end_evasive(stale, free, is_stale)
        time.sleep(_PAUSE_S)
    for uid in free:
        if users is not None:
            users.give_back(uid)


def sweep_folders(within: Path, prefixes: Iterable[str] = PREFIXES) -> None:
    """Remove the folders of dead agents and of their runs; it blocks."""
    for prefix in prefixes:
        for folder in within.glob(f"{prefix}*"):
            if is_abandoned(folder):
                remove_folder(folder)
        for folder in within.glob(f"{UNLOCKED}{prefix}*"):
            if _is_old(folder) and is_abandoned(folder):
                remove_folder(folder)


def _is_old(folder: Path) -> bool:
    try:
        return time.time() - folder.lstat().st_mtime > _MAKING_S
    except OSError:
        return False


def _idle_users(users: SlotUsers) -> set[int]:
    """Lock the users of the pool that have processes although no agent holds their lock."""
    seen = {read_uid(pid) for pid in all_pids()}
    return {uid for uid in SLOT_UIDS if uid in seen and users.lock(uid)}


def _end_evasive(stale: list[int], free: AbstractSet[int], is_stale: Callable[[int], bool]) -> None:
    """Kill processes that fork and exit faster than a round takes."""
    theirs = {uid for pid in stale if (uid := read_uid(pid)) is not None}
    for uid in theirs & free:
        if all(is_stale(pid) for pid in all_pids() if read_uid(pid) == uid):
            kill_user_processes(find_tools(), uid)
    if os.geteuid() in theirs:
        kill_newest(is_stale)


def _is_stale(pid: int, free: AbstractSet[int]) -> bool:
    tag, seen = read_tag(pid), read_process(pid)
    if tag is None or seen is None or seen.has_ended:
        return False
    uid = read_uid(pid)
    if uid is None:
        return False
    if uid in free:
        return is_from_dead_agent(tag) or not is_in_nested_namespace(pid)
    return uid == os.geteuid() and is_from_dead_agent(tag)


def main() -> None:
    """Sweep for an agent that was killed; the arguments are the folders that hold those of runs."""
    users = SlotUsers() if can_have_own_users() else None
    sweep_processes(users, quiet_rounds=_QUIET_ROUNDS)
    for within in sys.argv[1:]:
        sweep_folders(Path(within))


_SHELL: Final = "/bin/sh"
_WAIT_THEN_SWEEP: Final = 'read _; exec "$@"'
"""`read` returns when no process is left that could write, so when the agent has died."""
_ROOT: Final = str(Path(__file__).parents[1])


class Watchdog:
    """A shell that waits for the agent's end, then sweeps; it uses less than 1 MB."""

    def __init__(self, folders: list[Path]) -> None:
        """`folders`: those in which runs have their folders.

        Raises:
            OSError: it cannot be started.
        """
        waits, self._ours = open_pipe()
        try:
            self._pid = _start(waits, [str(folder) for folder in folders])
        finally:
            os.close(waits)

    def close(self) -> None:
        """End the watchdog without a sweep."""
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
