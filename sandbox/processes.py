"""Finds, marks and ends every process of a run, in /proc.

The mark that every process of a run inherits and none can take off: its limit of file locks.

Linux has long stopped to enforce that limit, shows it to everybody, hands it on at each fork and
exec, and lets a process without privileges lower it only. Whatever else has no such limit at all.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec

from sandbox.spawn import Identity

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


_PROC: Final = Path("/proc")
_ENDED: Final = "ZX"
_STARTED: Final = 19
"""Fields counted from the state on, which follows the name."""


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the system's table."""

    name: str
    """Of the program that it executed last, cut to 15 characters, unless it chose another."""
    parent: int
    group: int
    started: int
    """In ticks since the system's start."""
    has_ended: bool
    """It is there only until its parent asks how it ended."""


def all_pids() -> Iterator[int]:
    """Every process that this one can see."""
    names = os.listdir(_PROC)  # noqa: PTH208 -- thousands of names, four times a second
    return (int(name) for name in names if name.isdecimal())


def newest_pid() -> int:
    """The number that the system gave last."""
    return int((_PROC / "loadavg").read_text().split()[-1])


def user_of(pid: int) -> int | None:
    """The user that a process runs as. None: there is no such process."""
    try:
        return os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116 -- of each process, many times
    except OSError:
        return None


def look_up(pid: int) -> Process | None:
    """What is known of a process. None: there is no such process."""
    try:
        head, _, rest = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")
    except OSError:
        return None
    fields = rest.decode().split()
    return Process(
        name=head.partition(b"(")[2].decode(errors="replace"),
        parent=int(fields[1]),
        group=int(fields[2]),
        started=int(fields[_STARTED]),
        has_ended=fields[0] in _ENDED,
    )


def is_in_a_container(pid: int) -> bool:
    """Whether a process counts its numbers in a world of its own, below ours."""
    try:
        status = (_PROC / str(pid) / "status").read_text()
    except OSError:
        return False
    _, _, rest = status.partition("NSpid:")
    return len(rest.partition("\n")[0].split()) > 1


_NUMBER_BITS: Final = 12
_START_BITS: Final = 12
_AGENT_BITS: Final = 22
"""The system's largest process number has as many."""
_WORLD_BITS: Final = 16


class RunTags:
    """Makes the tags of one agent's runs: world, agent, when it started, and a number."""

    def __init__(self) -> None:
        agent = _world() << _AGENT_BITS | os.getpid()
        self._base = (agent << _START_BITS | (_start(os.getpid()) or 0)) << _NUMBER_BITS
        self._made = 0

    def make(self) -> int:
        """The next tag."""
        self._made = self._made % ((1 << _NUMBER_BITS) - 1) + 1
        return self._base | self._made


def tag_of(pid: int) -> int | None:
    """The tag of a process. None: it has none, as whatever no sandbox has started, or is gone."""
    try:
        limits = (_PROC / str(pid) / "limits").read_bytes()
    except OSError:
        return None
    _, found, rest = limits.partition(b"Max file locks")
    hard = rest.split(None, 2)[1] if found else b"unlimited"
    return None if hard == b"unlimited" else int(hard)


def is_of_a_dead_agent(tag: int) -> bool:
    """Whether a tag was made here, by an agent that is no more.

    Another container has other numbers for its processes, so its tags say nothing here.
    """
    rest, started = divmod(tag >> _NUMBER_BITS, 1 << _START_BITS)
    world, agent = divmod(rest, 1 << _AGENT_BITS)
    return world == _world() and _start(agent) != started


def _start(pid: int) -> int | None:
    """When a process started, in a few bits: numbers come around. None: it is no more."""
    seen = look_up(pid)
    return None if seen is None or seen.has_ended else seen.started % (1 << _START_BITS)


def _world() -> int:
    """What tells this container's process numbers from those of others."""
    return (_PROC / "self/ns/pid").stat().st_ino % (1 << _WORLD_BITS)
