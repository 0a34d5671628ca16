"""How much memory processes use, and how much there is for more."""

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_KB_PER_MB: Final = 1024
_BYTES_PER_MB: Final = 1024 * 1024
_PROC: Final = Path("/proc")
_CGROUP: Final = Path("/sys/fs/cgroup")
_LOOK_EVERY_S: Final = 0.25


def used_mb(pids: Iterable[int]) -> float:
    """What processes use together; the largest of their mapped files counts, the others not.

    Where many processes run one program, that comes near to each one's proportional share, which a
    container's root may not read of other users, and which takes eighty times as long.
    """
    own = shared = 0
    for pid in pids:
        parts = _resident_kb(pid)
        own += parts.get("RssAnon", 0) + parts.get("RssShmem", 0)
        shared = max(shared, parts.get("RssFile", 0))
    return (own + shared) / _KB_PER_MB


def available_mb(proc: Path = _PROC, cgroup: Path = _CGROUP) -> float:
    """How much more can be used before the machine, or our container, runs out."""
    machine = _fields(proc / "meminfo").get("MemAvailable", 0) / _KB_PER_MB
    return min(machine, _left_in_container_mb(cgroup))


async def enough_memory_for(needed_mb: int, *, wait_s: float) -> bool:
    """Whether there is as much, or comes free in time."""
    until = time.monotonic() + wait_s
    while available_mb() < needed_mb:
        if time.monotonic() >= until:
            return False
        await asyncio.sleep(_LOOK_EVERY_S)
    return True


def ended_for_want_of_memory(cgroup: Path = _CGROUP) -> int:
    """How many processes of our container the system itself has ended so far."""
    events = _fields(cgroup / "memory.events") or _fields(cgroup / "memory/memory.oom_control")
    return events.get("oom_kill", 0)


def _left_in_container_mb(cgroup: Path) -> float:
    newer = (cgroup / "memory.max", cgroup / "memory.current", cgroup / "memory.stat")
    older = tuple(
        cgroup / "memory" / name
        for name in ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat")
    )
    for limit, usage, stat in (newer, older):
        allowed, used = _number(limit), _number(usage)
        if allowed is not None and used is not None:
            idle = _fields(stat).get("inactive_file", 0)  # given up before anyone is ended
            return (allowed - used + idle) / _BYTES_PER_MB
    return float("inf")


def _number(path: Path) -> int | None:
    """None: there is no such file, or it sets no limit."""
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _resident_kb(pid: int) -> dict[str, int]:
    return _fields(_PROC / str(pid) / "status", only="Rss")


def _fields(path: Path, *, only: str = "") -> dict[str, int]:
    """The lines that are a name and a number, whatever stands between and behind them."""
    lines = (line.replace(":", " ").split() for line in _text(path).splitlines())
    return {
        line[0]: int(line[1])
        for line in lines
        if len(line) > 1 and line[0].startswith(only) and line[1].isdecimal()
    }


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
