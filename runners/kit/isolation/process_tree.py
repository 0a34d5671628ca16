"""All processes that came from one program, wherever they went, and their end."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Final

from runners.kit.isolation.process_limits import Identity
from runners.kit.isolation.processes import all_pids, look_up, newest_pid, user_of
from runners.kit.isolation.run_tags import tag_of

_PATIENCE_S: Final = 30
"""A process that is not gone by then waits for a disk, and no signal reaches it."""
_LONGEST_PAUSE_S: Final = 0.05
_CHASE_S: Final = 0.05
SLIPPERY_ROUNDS: Final = 3
"""Whatever is alive after so many rounds changes its number faster than we look."""


class ProcessTree:
    """The processes of one identity: those of its user, or else of its tag."""

    def __init__(
        self,
        root: int,
        identity: Identity,
        *,
        is_live: Callable[[int], bool],
        end_user: Callable[[int], None],
    ) -> None:
        """Take a program's first process, which nobody else waits for.

        Args:
            root: its number, which stays taken until `reap`.
            identity: what all processes of the program have.
            is_live: whether a tag is of a run under way in this agent.
            end_user: ends all processes of a user at one blow.
        """
        self._root = root
        """It has its identity a moment after its start only."""
        self._identity = identity
        self._is_live = is_live
        self._end_user = end_user
        self._end_begins = Lock()
        """While it is ended, ended processes are what tells of those that got away."""

    @property
    def uid(self) -> int | None:
        """The user that its processes alone are. None: they are the agent's own user's."""
        return self._identity.uid

    def has(self, pid: int) -> bool:
        """Whether a process came from the program."""
        if pid == self._root:
            return True
        uid = self._identity.uid
        if user_of(pid) != (os.geteuid() if uid is None else uid):
            return False
        tag = tag_of(pid)
        if tag is None:
            return False
        return uid is not None or tag == self._identity.tag or self._is_stray(pid, tag)

    def pids(self) -> list[int]:
        """The processes that came from the program, ended ones included."""
        return [pid for pid in all_pids() if self.has(pid)]

    def wait_for_others(self, seconds: float) -> None:
        """Until none but the first process lives, for so long at most; it blocks."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._others():
            time.sleep(_LONGEST_PAUSE_S)

    def let_go(self, pids: Iterable[int]) -> None:
        """Have the system forget those that ended and were left to us."""
        if self._end_begins.acquire(blocking=False):
            try:
                self._let_go(pids)
            finally:
                self._end_begins.release()

    def kill(self) -> None:
        """End all of them, and return when none is left.

        One that forks and ends faster than we look leaves the ended one to us, where it stays until
        we ask for it. So a look that finds neither living nor ended ones has missed nobody.

        Raises:
            OSError: one cannot be ended.
        """
        with self._end_begins:
            self._kill()

    def reap(self) -> int:
        """How the program ended; its number is free then.

        Its rusage is of no use: until its exec it counted as large as we are.
        """
        return os.waitpid(self._root, 0)[1]

    def _kill(self) -> None:
        until, pause_s, rounds = time.monotonic() + _PATIENCE_S, 0.001, 0
        while others := [pid for pid in self.pids() if pid != self._root or not _has_ended(pid)]:
            if time.monotonic() > until:
                raise OSError(f"{len(others)} processes of a script cannot be ended: {others[:5]}")
            self._strike(others, rounds)
            time.sleep(pause_s)
            self._let_go(others)
            pause_s, rounds = min(_LONGEST_PAUSE_S, pause_s * 2), rounds + 1

    def _others(self) -> bool:
        return any(pid != self._root and not _has_ended(pid) for pid in self.pids())

    def _let_go(self, pids: Iterable[int]) -> None:
        for pid in pids:
            seen = look_up(pid)
            if pid != self._root and seen and seen.has_ended and seen.parent == os.getpid():
                with contextlib.suppress(ChildProcessError):  # another tree was quicker
                    os.waitpid(pid, os.WNOHANG)

    def _strike(self, pids: Iterable[int], rounds: int) -> None:
        # Groups first: one call ends all of one, and no fork gets away meanwhile.
        for group in {self._root, *filter(None, map(self._group_of, pids))}:
            with contextlib.suppress(OSError):
                os.killpg(group, signal.SIGKILL)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                if not _has_ended(pid):
                    send(pid, number, when=self.has)
        if rounds < SLIPPERY_ROUNDS:
            return
        if self._identity.uid is None:
            chase(self.has)
        else:
            self._end_user(self._identity.uid)

    def _group_of(self, pid: int) -> int | None:
        """A group of a session that the program or its processes have opened. None: not seen."""
        seen = look_up(pid)
        return seen.group if seen and self.has(seen.group) else None

    def _is_stray(self, pid: int, tag: int) -> bool:
        # A script can lower its tag. Then its line of parents still tells.
        return not self._is_live(tag) and is_adopted(pid)


def chase(is_meant: Callable[[int], bool]) -> bool:
    """Strike at the newest process again and again: the next number of one that changes it.

    Whether there was one to strike at.
    """
    until, has_met = time.monotonic() + _CHASE_S, False
    while time.monotonic() < until:
        newest = newest_pid()
        if is_meant(newest):
            has_met = True
            send(newest, signal.SIGKILL, when=is_meant)
    return has_met


def _has_ended(pid: int) -> bool:
    seen = look_up(pid)
    return seen is None or seen.has_ended


def is_adopted(pid: int) -> bool:
    """Whether nothing but tagged processes stands between a process and this one.

    Orphans come to whoever adopts them; what another agent on this machine has started does not.
    """
    while tag_of(pid) is not None and (seen := look_up(pid)) is not None:
        if seen.parent == os.getpid():
            return True
        pid = seen.parent
    return False


def send(pid: int, number: signal.Signals, *, when: Callable[[int], bool]) -> None:
    """Send a signal to a process that is still the one that is meant.

    By descriptor: between the look and the signal, its number could pass to another process.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if when(pid):
            signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return
    finally:
        os.close(descriptor)
