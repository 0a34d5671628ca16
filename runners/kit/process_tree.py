"""All processes that came from one program, wherever they went, and their end."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from runners.kit.process_limits import Identity

_PROC: Final = Path("/proc")
_PATIENCE_S: Final = 30
"""A process that is not gone by then waits for a disk, and no signal reaches it."""
_LONGEST_PAUSE_S: Final = 0.1
_KB_PER_MB: Final = 1024


def all_pids() -> Iterator[int]:
    """Every process that this one can see, ended ones that nobody has waited for included."""
    return (int(name) for name in os.listdir(_PROC) if name.isdecimal())


def user_of(pid: int) -> int | None:
    """The user that a process runs as. None: there is no such process."""
    try:
        return (_PROC / str(pid)).stat().st_uid
    except OSError:
        return None


def tag_of(pid: int) -> int | None:
    """The tag that a process has inherited. None: none, as whatever the sandbox did not start."""
    try:
        limits = (_PROC / str(pid) / "limits").read_bytes()
    except OSError:
        return None
    _, found, rest = limits.partition(b"Max file locks")
    hard = rest.split(None, 2)[1] if found else b"unlimited"
    return None if hard == b"unlimited" else int(hard)


def parent_and_state(pid: int) -> tuple[int, str]:
    """The parent of a process and the letter of its state; (0, "X") when it is gone."""
    try:
        _, _, rest = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")
    except OSError:
        return 0, "X"
    state, parent = rest.split(None, 2)[:2]
    return int(parent), state.decode()


class ProcessTree:
    """The processes of one identity; by its user, or else by its tag."""

    def __init__(self, root: int, identity: Identity, *, is_stray: Callable[[int], bool]) -> None:
        """Take a program's first process, which nobody else waits for.

        Args:
            root: its number, which stays taken until `reap`.
            identity: what all processes of the program have.
            is_stray: whether a tag is of no run, so that whoever finds it first ends it.
        """
        self._root = root
        """It has its identity a moment after its start only."""
        self._identity = identity
        self._is_stray = is_stray

    def has(self, pid: int) -> bool:
        """Whether a process came from the program."""
        if pid == self._root:
            return True
        if self._identity.uid is not None:
            return user_of(pid) == self._identity.uid
        if user_of(pid) != os.geteuid():
            return False
        tag = tag_of(pid)
        return tag is not None and (tag == self._identity.tag or self._is_stray(tag))

    def pids(self) -> list[int]:
        """The processes that came from the program."""
        return [pid for pid in all_pids() if self.has(pid)]

    def living(self) -> list[int]:
        """Those that still run, or at least could."""
        return [pid for pid in self.pids() if parent_and_state(pid)[1] not in "ZX"]

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to each."""
        for pid in self.living():
            self._signal(pid, number)

    def kill(self, *, also: Callable[[], None] | None = None) -> None:
        """End all of them, and return when none is left.

        Args:
            also: what else ends processes of this identity, all at one blow.

        Raises:
            OSError: one cannot be ended.
        """
        until, pause_s = time.monotonic() + _PATIENCE_S, 0.001
        while living := self.living():
            if time.monotonic() > until:
                raise OSError(f"{len(living)} processes of a script cannot be ended: {living[:5]}")
            if also is not None:
                also()
            self.signal_all(signal.SIGSTOP)
            self.signal_all(signal.SIGKILL)
            time.sleep(pause_s)
            pause_s = min(_LONGEST_PAUSE_S, pause_s * 2)

    def reap(self) -> tuple[int, float]:
        """Let go of all that ended: the program's status, and its largest process in MB."""
        for pid in self.pids():
            if pid != self._root and parent_and_state(pid)[0] == os.getpid():
                os.waitpid(pid, os.WNOHANG)
        _, status, usage = os.wait4(self._root, 0)
        return status, usage.ru_maxrss / _KB_PER_MB

    def _signal(self, pid: int, number: signal.Signals) -> None:
        # By descriptor: between the look and the signal, the number could pass to another process.
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            if self.has(pid):
                signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return
        finally:
            os.close(descriptor)
