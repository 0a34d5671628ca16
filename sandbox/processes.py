"""Finds, marks and ends every process of a run, through /proc.

The mark is RLIMIT_LOCKS, which every process of a run inherits and none can remove. Linux no longer
enforces that limit, shows it to everybody, keeps it across fork and exec, and lets a process
without privileges only lower it. Processes of no run have no such limit.
"""

import contextlib
import errno
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
"""A process that is still there by then waits for a disk, where no signal reaches it."""
_LONGEST_PAUSE_S: Final = 0.05
_CHASE_S: Final = 0.05
EVASIVE_ROUNDS: Final = 3
"""A process that survives this many rounds forks and exits faster than a round takes."""


class ProcessTree:
    """The processes of one program: all of its user, or else all with its tag."""

    def __init__(
        self,
        root: int,
        identity: Identity,
        *,
        is_live: Callable[[int], bool],
        end_user: Callable[[int], None],
    ) -> None:
        """Take the first process of a program, which nobody else waits for.

        Args:
            root: its pid, which stays in use until `reap`.
            identity: what all processes of the program have.
            is_live: whether a tag belongs to a run in progress of this agent.
            end_user: kills all processes of a user at once.
        """
        self._root = root
        """The first process, which gets its user and tag only a moment after its start."""
        self._identity = identity
        self._is_live = is_live
        self._end_user = end_user
        self._end_begins = Lock()
        """Held during `kill`, which needs zombies unreaped: they show that a process got away."""

    @property
    def uid(self) -> int | None:
        """The user that only its processes run as. None: they run as the agent's own user."""
        return self._identity.uid

    def contains(self, pid: int) -> bool:
        """Whether a process belongs to the program."""
        if pid == self._root:
            return True
        uid = self._identity.uid
        if read_uid(pid) != (os.geteuid() if uid is None else uid):
            return False
        tag = read_tag(pid)
        if tag is None:
            return False
        return (
            uid is not None or tag == self._identity.tag or self._is_unmarked_descendant(pid, tag)
        )

    def pids(self) -> list[int]:
        """List the processes of the program, zombies included."""
        return [pid for pid in all_pids() if self.contains(pid)]

    def wait_for_others(self, seconds: float) -> None:
        """Wait until only the first process is alive, at most this long; it blocks."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._others():
            time.sleep(_LONGEST_PAUSE_S)

    def reap_orphans(self, pids: Iterable[int]) -> None:
        """Reap the orphans among these processes that have ended."""
        if self._end_begins.acquire(blocking=False):
            try:
                self._reap_orphans(pids)
            finally:
                self._end_begins.release()

    def kill(self) -> None:
        """Kill all its processes, and return when none is left.

        A process that forks and exits faster than a round takes leaves a zombie, which stays until
        it is reaped here. A round that finds neither processes nor zombies has missed nobody.

        Raises:
            OSError: a process cannot be killed.
        """
        with self._end_begins:
            self._kill()

    def reap(self) -> int:
        """Wait for the first process, and return its status; its pid is free afterwards.

        Its rusage says nothing: until its exec, it counted as large as the agent.
        """
        return os.waitpid(self._root, 0)[1]

    def _kill(self) -> None:
        until, pause_s, rounds = time.monotonic() + _PATIENCE_S, 0.001, 0
        while True:
            began = time.monotonic()
            found = [pid for pid in self.pids() if pid != self._root or not _has_ended(pid)]
            if not found:
                return
            if began > until:
                raise OSError(f"{len(found)} processes of a script cannot be killed: {found[:5]}")
            groups = self._groups_of(found)  # before its leader is reaped, which shows it is ours
            self._reap_orphans(found)
            self._signal_all(groups, [pid for pid in found if not _has_ended(pid)])
            if rounds >= EVASIVE_ROUNDS:
                # As long as a round takes: a list of thousands of zombies gives them time to fork.
                self._end_evasive(max(_CHASE_S, time.monotonic() - began))
            time.sleep(pause_s)
            pause_s, rounds = min(_LONGEST_PAUSE_S, pause_s * 2), rounds + 1

    def _others(self) -> bool:
        return any(pid != self._root and not _has_ended(pid) for pid in self.pids())

    def _reap_orphans(self, pids: Iterable[int]) -> None:
        for pid in pids:
            seen = read_process(pid)
            if pid != self._root and seen and seen.has_ended and seen.parent == os.getpid():
                with contextlib.suppress(ChildProcessError):  # another tree reaped it first
                    os.waitpid(pid, os.WNOHANG)

    def _signal_all(self, groups: Iterable[int], pids: Iterable[int]) -> None:
        # Groups first: one call kills a whole group, and no fork gets away meanwhile.
        for group in groups:
            with contextlib.suppress(OSError):
                os.killpg(group, signal.SIGKILL)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                if not _has_ended(pid):
                    send_signal(pid, number, when=self.contains)

    def _end_evasive(self, seconds: float) -> None:
        if self._identity.uid is None:
            kill_newest(self.contains, seconds)
        else:
            self._end_user(self._identity.uid)

    def _groups_of(self, pids: Iterable[int]) -> set[int]:
        """The groups of processes that a process of the program leads."""
        groups = {seen.group for seen in map(read_process, pids) if seen is not None}
        return {self._root, *filter(self.contains, groups)}

    def _is_unmarked_descendant(self, pid: int, tag: int) -> bool:
        # A script can lower its tag, but its ancestors still show where it came from.
        return not self._is_live(tag) and is_adopted(pid)


def kill_newest(is_meant: Callable[[int], bool], seconds: float = _CHASE_S) -> bool:
    """Kill the newest process again and again: it is the next pid of one that forks and exits.

    Return whether there was such a process.
    """
    until, has_met = time.monotonic() + seconds, False
    with (_PROC / "loadavg").open("rb", buffering=0) as numbers:
        while time.monotonic() < until:
            newest = int(os.pread(numbers.fileno(), 128, 0).split()[-1])
            has_met |= send_signal(newest, signal.SIGKILL, when=is_meant)
    return has_met


def _has_ended(pid: int) -> bool:
    seen = read_process(pid)
    return seen is None or seen.has_ended


def is_adopted(pid: int) -> bool:
    """Whether all ancestors of a process, up to this one, are tagged.

    Orphans of runs are reparented to this process; those of another agent are not.
    """
    while read_tag(pid) is not None and (seen := read_process(pid)) is not None:
        if seen.parent == os.getpid():
            return True
        pid = seen.parent
    return False


_NO_PROCESS: Final = (errno.ESRCH, errno.EINVAL, errno.ENOENT)
"""What `pidfd_open` says of a pid that is gone, and of a thread (by the kernel, one of two)."""


def send_signal(pid: int, number: signal.Signals, *, when: Callable[[int], bool]) -> bool:
    """Send a signal to a process, if it still is the one that is meant; return whether it was.

    A pidfd is used, because the pid could be reused between the check and the signal.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except OSError as error:
        if error.errno in _NO_PROCESS:
            return False
        raise
    try:
        is_meant = when(pid)
        if is_meant:
            with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
                signal.pidfd_send_signal(descriptor, number)
    finally:
        os.close(descriptor)
    return is_meant


_PROC: Final = Path("/proc")
_ENDED: Final = "ZX"
_STARTED: Final = 19
"""The index of `starttime`, counted from the state, which follows the name."""


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """What /proc/PID/stat says of a process."""

    name: str
    """The name of its program, cut to 15 characters, unless it set another one."""
    parent: int
    group: int
    started: int
    """When it started, in clock ticks since boot."""
    has_ended: bool
    """Whether it is a zombie, which only waits to be reaped."""


def all_pids() -> Iterator[int]:
    """Yield the pid of every process that this one can see."""
    names = os.listdir(_PROC)  # noqa: PTH208 -- thousands of names, four times a second
    return (int(name) for name in names if name.isdecimal())


def read_uid(pid: int) -> int | None:
    """Read the user that a process runs as. None: there is no such process."""
    try:
        return os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116 -- of each process, many times
    except OSError:
        return None


def read_process(pid: int) -> Process | None:
    """Read /proc/PID/stat. None: there is no such process."""
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


def is_in_nested_namespace(pid: int) -> bool:
    """Whether a process is in a PID namespace below ours."""
    try:
        status = (_PROC / str(pid) / "status").read_text()
    except OSError:
        return False
    _, _, rest = status.partition("NSpid:")
    return len(rest.partition("\n")[0].split()) > 1


_NUMBER_BITS: Final = 12
_START_BITS: Final = 12
_AGENT_BITS: Final = 22
"""The kernel's largest pid has as many bits."""
_NAMESPACE_BITS: Final = 16


class RunTags:
    """Makes the tags of an agent's runs: PID namespace, agent's pid, its start, and a number."""

    def __init__(self) -> None:
        agent = _pid_namespace() << _AGENT_BITS | os.getpid()
        self._base = (agent << _START_BITS | (_start_bits(os.getpid()) or 0)) << _NUMBER_BITS
        self._made = 0

    def next_tag(self) -> int:
        """Make the next tag."""
        self._made = self._made % ((1 << _NUMBER_BITS) - 1) + 1
        return self._base | self._made


def read_tag(pid: int) -> int | None:
    """Read the tag of a process. None: it has none because no sandbox started it, or it is gone."""
    try:
        limits = (_PROC / str(pid) / "limits").read_bytes()
    except OSError:
        return None
    _, found, rest = limits.partition(b"Max file locks")
    hard = rest.split(None, 2)[1] if found else b"unlimited"
    return None if hard == b"unlimited" else int(hard)


def is_from_dead_agent(tag: int) -> bool:
    """Whether a tag was made in this PID namespace, by an agent that is dead.

    The pids in tags of other containers say nothing here.
    """
    rest, started = divmod(tag >> _NUMBER_BITS, 1 << _START_BITS)
    world, agent = divmod(rest, 1 << _AGENT_BITS)
    return world == _pid_namespace() and _start_bits(agent) != started


def _start_bits(pid: int) -> int | None:
    """The low bits of when a process started, as pids are reused. None: it is gone."""
    seen = read_process(pid)
    return None if seen is None or seen.has_ended else seen.started % (1 << _START_BITS)


def _pid_namespace() -> int:
    """The low bits of the id of our PID namespace."""
    return (_PROC / "self/ns/pid").stat().st_ino % (1 << _NAMESPACE_BITS)
