"""All processes that came from one program, wherever they went, and their end."""

import os
import signal
import time
from collections.abc import Callable, Iterable
from typing import Final

from runners.kit.process_limits import Identity
from runners.kit.processes import all_pids, look_up, user_of
from runners.kit.run_tags import tag_of

_PATIENCE_S: Final = 30
"""A process that is not gone by then waits for a disk, and no signal reaches it."""
_LONGEST_PAUSE_S: Final = 0.05
_SLIPPERY_ROUNDS: Final = 3
"""Whatever is alive after so many rounds changes its number faster than we look."""
_KB_PER_MB: Final = 1024


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

    def living(self) -> list[int]:
        """Those that have not ended."""
        return [pid for pid in self.pids() if (seen := look_up(pid)) and not seen.has_ended]

    def kill(self) -> None:
        """End all of them, and return when none is left.

        Raises:
            OSError: one cannot be ended.
        """
        until, pause_s, rounds = time.monotonic() + _PATIENCE_S, 0.001, 0
        while living := self.living():
            if time.monotonic() > until:
                raise OSError(f"{len(living)} processes of a script cannot be ended: {living[:5]}")
            self._strike(living, rounds)
            time.sleep(pause_s)
            pause_s, rounds = min(_LONGEST_PAUSE_S, pause_s * 2), rounds + 1

    def reap(self) -> tuple[int, float]:
        """Let go of all that ended: the program's status, and its largest process in MB."""
        for pid in self.pids():
            seen = look_up(pid)
            if pid != self._root and seen and seen.parent == os.getpid():
                os.waitpid(pid, os.WNOHANG)
        _, status, usage = os.wait4(self._root, 0)
        return status, usage.ru_maxrss / _KB_PER_MB

    def _strike(self, living: Iterable[int], rounds: int) -> None:
        if rounds >= _SLIPPERY_ROUNDS and self._identity.uid is not None:
            self._end_user(self._identity.uid)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in living:
                send(pid, number, when=self.has)

    def _is_stray(self, pid: int, tag: int) -> bool:
        # A script can lower its tag. Then its line of parents still tells.
        return not self._is_live(tag) and is_adopted(pid)


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
