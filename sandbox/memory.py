"""Memory: how much is available, how much processes use, and how much is reserved for runs.

A program reserves memory before it starts: without reservations, two programs that start at the
same time would both count on the same free memory.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

_KB_PER_MB: Final = 1024
_BYTES_PER_MB: Final = 1024 * 1024
_PROC: Final = Path("/proc")
_CGROUP: Final = Path("/sys/fs/cgroup")


class _Names(msgspec.Struct, frozen=True):
    """The files of one version of control groups."""

    limit: str
    usage: str
    events: str


_CGROUP_V2: Final = _Names("memory.max", "memory.current", "memory.events")
_CGROUP_V1: Final = _Names("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control")


class Usage(msgspec.Struct, frozen=True):
    """The memory of a set of processes."""

    used_mb: float
    """The memory that all of them use together."""
    shared_files_mb: float
    """The part of it that is in mapped files in memory."""
    reserved_mb: float
    """The most data that one of them has reserved (VmData), used or not."""


def measure_memory(pids: Iterable[int]) -> Usage:
    """Measure what processes use together; of their mapped files only the largest sum counts.

    For many processes of one program this comes near the sum of their PSS, which root in a
    container may not read for other users, and which takes eighty times as long to read.
    """
    own = files = shared = reserved = 0
    for pid in pids:
        parts = _fields(_PROC / str(pid) / "status")
        own += parts.get("RssAnon", 0)
        files += parts.get("RssShmem", 0)
        shared = max(shared, parts.get("RssFile", 0))
        reserved = max(reserved, parts.get("VmData", 0))
    used = own + files + shared
    return Usage(used / _KB_PER_MB, files / _KB_PER_MB, reserved / _KB_PER_MB)


def available_mb(proc: Path = _PROC, cgroup: Path = _CGROUP) -> float:
    """Read how much memory can be used before the machine, or our container, runs out."""
    machine = _fields(proc / "meminfo").get("MemAvailable", 0) / _KB_PER_MB
    return min(machine, _left_in_container_mb(proc, cgroup))


def count_oom_kills(proc: Path = _PROC, cgroup: Path = _CGROUP) -> int:
    """Count the processes of our control group that the OOM killer has ended so far.

    Where no group counts them, all OOM kills of the machine count.
    """
    groups = (folder / names.events for folder, names in _groups(proc, cgroup))
    counts = (_fields(path).get("oom_kill") for path in (*groups, proc / "vmstat"))
    return next((count for count in counts if count is not None), 0)


def _left_in_container_mb(proc: Path, cgroup: Path) -> float:
    """What the tightest limit of our control group and its ancestors leaves."""
    return min((_left_mb(folder, names) for folder, names in _groups(proc, cgroup)))


def _left_mb(folder: Path, names: _Names) -> float:
    allowed, used = _number(folder / names.limit), _number(folder / names.usage)
    if allowed is None or used is None:
        return float("inf")
    # The kernel drops these pages before it ends a process.
    idle = _fields(folder / "memory.stat").get("inactive_file", 0)
    return (allowed - used + idle) / _BYTES_PER_MB


def _groups(proc: Path, cgroup: Path) -> Iterator[tuple[Path, _Names]]:
    """The folders of all control groups that count our memory, our own first."""
    mounts = {"": (cgroup, _CGROUP_V2), "memory": (cgroup / "memory", _CGROUP_V1)}
    for line in _text(proc / "self/cgroup").splitlines():
        _, kinds, path = line.split(":", 2)
        for kind in set(kinds.split(",")) & mounts.keys():
            mount, names = mounts[kind]
            inside = PurePosixPath(path.lstrip("/"))
            # A group above the root that we see belongs to somebody else.
            if ".." not in inside.parts:
                yield from ((mount / part, names) for part in (inside, *inside.parents))
    yield from mounts.values()  # a container may see its own group there, under no name


def _number(path: Path) -> int | None:
    """Read a number. None: there is no such file, or it sets no limit."""
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _fields(path: Path) -> dict[str, int]:
    """Read the lines that consist of a name and a number, with or without a colon and a unit."""
    lines = (line.replace(":", " ").split() for line in _text(path).splitlines())
    return {line[0]: int(line[1]) for line in lines if len(line) > 1 and line[1].isdecimal()}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


_CHECK_EVERY_S: Final = 0.25


class TooLittleMemoryError(OSError):
    """The machine, or our container, has too little memory for a program: no check's fault."""


class MemoryReservation:
    """Memory reserved for one program; what it uses already no longer counts as reserved."""

    def __init__(self, reservations: "MemoryReservations") -> None:
        self._reservations = reservations
        self._reserved_mb = 0
        self._used_mb = 0.0

    @property
    def unused_mb(self) -> float:
        """The reserved memory that the program does not use yet."""
        return max(0.0, self._reserved_mb - self._used_mb)

    def record_use(self, used_mb: float) -> None:
        """Note how much memory the program uses now."""
        self._used_mb = max(self._used_mb, used_mb)

    async def grow(self, needed_mb: int, *, wait_s: float) -> None:
        """Raise the reservation to `needed_mb` as soon as that much memory is free.

        Raises:
            TooLittleMemoryError: there is not, and none comes free in time.
        """
        until = time.monotonic() + wait_s
        while (missing_mb := needed_mb - self._used_mb) > 0:
            if (free_mb := self._reservations.free_mb) >= missing_mb:
                break
            if time.monotonic() >= until:
                raise TooLittleMemoryError(
                    f"There are {max(0.0, free_mb):.0f} MB of memory free for another script, "
                    f"which may need {missing_mb:.0f}"
                )
            await asyncio.sleep(_CHECK_EVERY_S)
        self._reserved_mb = needed_mb

    def release(self) -> None:
        """Give the reserved memory back."""
        self._reservations.remove(self)


class MemoryReservations:
    """All memory reservations of one agent."""

    def __init__(self, available_mb: Callable[[], float] = available_mb) -> None:
        """`available_mb`: reads how much memory the system reports as available."""
        self._available_mb = available_mb
        self._open: set[MemoryReservation] = set()

    @property
    def free_mb(self) -> float:
        """The memory that is neither in use nor reserved."""
        return self._available_mb() - sum(reservation.unused_mb for reservation in self._open)

    async def reserve(self, needed_mb: int, *, wait_s: float) -> MemoryReservation:
        """Reserve memory as soon as there is enough; a reservation of 0 MB never waits.

        Raises:
            TooLittleMemoryError: there is not, and none comes free in time.
        """
        reservation = MemoryReservation(self)
        await reservation.grow(needed_mb, wait_s=wait_s)
        self._open.add(reservation)
        return reservation

    def remove(self, reservation: MemoryReservation) -> None:
        """Forget a reservation; a second call does nothing."""
        self._open.discard(reservation)
