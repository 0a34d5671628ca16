"""How much memory there is, is used, and is reserved for runs.

Memory that was promised to programs which have not used it yet.

To look whether there is enough is no use when two look at once: both see the same memory.
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
    """How the system calls what a group may use, and does."""

    limit: str
    usage: str
    events: str


_NEWER: Final = _Names("memory.max", "memory.current", "memory.events")
_OLDER: Final = _Names("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control")


class Usage(msgspec.Struct, frozen=True):
    """What processes have."""

    used_mb: float
    """All together."""
    reserved_mb: float
    """The most that one of them has asked for, whether it uses it or not."""


def usage_of(pids: Iterable[int]) -> Usage:
    """What processes use together; the largest of their mapped files counts, the others not.

    Where many processes run one program, that comes near to each one's proportional share, which a
    container's root may not read of other users, and which takes eighty times as long.
    """
    own = shared = reserved = 0
    for pid in pids:
        parts = _fields(_PROC / str(pid) / "status")
        own += parts.get("RssAnon", 0) + parts.get("RssShmem", 0)
        shared = max(shared, parts.get("RssFile", 0))
        reserved = max(reserved, parts.get("VmData", 0))
    return Usage((own + shared) / _KB_PER_MB, reserved / _KB_PER_MB)


def available_mb(proc: Path = _PROC, cgroup: Path = _CGROUP) -> float:
    """How much more can be used before the machine, or our container, runs out."""
    machine = _fields(proc / "meminfo").get("MemAvailable", 0) / _KB_PER_MB
    return min(machine, _left_in_container_mb(proc, cgroup))


def ended_for_want_of_memory(proc: Path = _PROC, cgroup: Path = _CGROUP) -> int:
    """How many of our processes the system has ended so far, whoever had no more memory.

    Where nobody counts ours alone, all that were ended on the machine.
    """
    groups = (folder / names.events for folder, names in _groups(proc, cgroup))
    counts = (_fields(path).get("oom_kill") for path in (*groups, proc / "vmstat"))
    return next((count for count in counts if count is not None), 0)


def _left_in_container_mb(proc: Path, cgroup: Path) -> float:
    """What the tightest limit leaves, of our group or one that it is in."""
    return min((_left_mb(folder, names) for folder, names in _groups(proc, cgroup)))


def _left_mb(folder: Path, names: _Names) -> float:
    allowed, used = _number(folder / names.limit), _number(folder / names.usage)
    if allowed is None or used is None:
        return float("inf")
    idle = _fields(folder / "memory.stat").get(
        "inactive_file", 0
    )  # given up before anyone is ended
    return (allowed - used + idle) / _BYTES_PER_MB


def _groups(proc: Path, cgroup: Path) -> Iterator[tuple[Path, _Names]]:
    """The folders of all groups that count our memory, ours first."""
    mounts = {"": (cgroup, _NEWER), "memory": (cgroup / "memory", _OLDER)}
    for line in _text(proc / "self/cgroup").splitlines():
        _, kinds, path = line.split(":", 2)
        for kind in set(kinds.split(",")) & mounts.keys():
            mount, names = mounts[kind]
            inside = PurePosixPath(path.lstrip("/"))
            # Above the root that we see: it is somebody else's.
            if ".." not in inside.parts:
                yield from ((mount / part, names) for part in (inside, *inside.parents))
    yield from mounts.values()  # a container may see its own group there, under no name


def _number(path: Path) -> int | None:
    """None: there is no such file, or it sets no limit."""
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _fields(path: Path) -> dict[str, int]:
    """The lines that are a name and a number, whatever stands between and behind them."""
    lines = (line.replace(":", " ").split() for line in _text(path).splitlines())
    return {line[0]: int(line[1]) for line in lines if len(line) > 1 and line[1].isdecimal()}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


_LOOK_EVERY_S: Final = 0.25


class TooLittleMemoryError(OSError):
    """The machine, or our container, has no room for a program: that is no check's fault."""


class MemoryReservation:
    """So much memory for one program; what it uses by now shows as used, and is no longer open."""

    def __init__(self, promises: "MemoryPromises") -> None:
        self._promises = promises
        self._promised_mb = 0
        self._used_mb = 0.0

    @property
    def open_mb(self) -> float:
        """What it may still come to use."""
        return max(0.0, self._promised_mb - self._used_mb)

    def note(self, used_mb: float) -> None:
        """It has used so much."""
        self._used_mb = max(self._used_mb, used_mb)

    async def grow(self, needed_mb: int, *, wait_s: float) -> None:
        """Be for so much, as soon as there is what it does not use yet.

        Raises:
            TooLittleMemoryError: there is not, and none comes free in time.
        """
        until = time.monotonic() + wait_s
        while (missing_mb := needed_mb - self._used_mb) > 0:
            if (free_mb := self._promises.free_mb) >= missing_mb:
                break
            if time.monotonic() >= until:
                raise TooLittleMemoryError(
                    f"There are {max(0.0, free_mb):.0f} MB of memory free for another script, "
                    f"which may need {missing_mb:.0f}"
                )
            await asyncio.sleep(_LOOK_EVERY_S)
        self._promised_mb = needed_mb

    def end(self) -> None:
        """It needs no more."""
        self._promises.forget(self)


class MemoryPromises:
    """Those of one agent."""

    def __init__(self, available_mb: Callable[[], float] = available_mb) -> None:
        """`available_mb`: how much is free by the system's word."""
        self._available_mb = available_mb
        self._open: set[MemoryReservation] = set()

    @property
    def free_mb(self) -> float:
        """What nobody uses, and nobody was promised."""
        return self._available_mb() - sum(promise.open_mb for promise in self._open)

    async def make(self, needed_mb: int, *, wait_s: float) -> MemoryReservation:
        """Promise so much as soon as there is; to ask for nothing costs nothing.

        Raises:
            TooLittleMemoryError: there is not, and none comes free in time.
        """
        promise = MemoryReservation(self)
        await promise.grow(needed_mb, wait_s=wait_s)
        self._open.add(promise)
        return promise

    def forget(self, promise: MemoryReservation) -> None:
        """It holds no more; to be told twice is no harm."""
        self._open.discard(promise)
