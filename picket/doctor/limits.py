"""What `picket doctor` asks of the limits that this host sets: memory, processes, open files."""

import resource
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from agent.settings import Settings
from agent.settings_table import BYTES_PER_MAIN_JOB, free_memory_bytes
from picket.doctor.findings import Finding, ok, warn

_FILES_PER_SLOT: Final = 3
"""An HTTP check has a socket or two and may ask a name server meanwhile."""
_FILES_BESIDE: Final = 64
"""Log, spool, health port, the way to the service."""
_TASKS_PER_BROWSER: Final = 100
"""Processes and threads of a suite and Chromium; one with one page was measured to have 76."""
_TASKS_BESIDE: Final = 64
_GIGA: Final = 1_000_000_000
_CGROUP: Final = Path("/sys/fs/cgroup")
_PROC: Final = Path("/proc")


def memory_for_browsers(settings: Settings, free_bytes: int | None = None) -> Finding:
    """Whether as many browsers as asked for fit into memory at once.

    `free_bytes`: how much is free. None: what the system says.
    """
    what = "memory"
    free_bytes = free_memory_bytes() if free_bytes is None else free_bytes
    fitting = free_bytes // BYTES_PER_MAIN_JOB
    each = f"{BYTES_PER_MAIN_JOB / _GIGA:g} GB"
    seen = (
        f"{free_bytes / _GIGA:.1f} GB free, room for {fitting} browsers at once ({each} each); "
        f"JOB_CONCURRENCY is {settings.job_concurrency}"
    )
    if fitting >= settings.job_concurrency:
        return ok(what, seen)
    lower = f"set JOB_CONCURRENCY to {fitting}, or " if fitting else ""
    return warn(what, seen, fix=f"{lower}give the agent more memory")


def process_limit(settings: Settings, *, proc: Path = _PROC, cgroup: Path = _CGROUP) -> Finding:
    """Whether as many browsers as asked for may have their processes and threads at once."""
    what = "processes"
    needed = settings.job_concurrency * _TASKS_PER_BROWSER + _TASKS_BESIDE
    wanted = f"{needed} wanted for JOB_CONCURRENCY {settings.job_concurrency}"
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    limits = [(left, f"pids.max of {group}") for left, group in _left_in_groups(proc, cgroup)]
    if soft != resource.RLIM_INFINITY:
        limits.append((soft, "ulimit -u"))
    if not limits:
        return ok(what, f"no limit, {wanted}")
    least, name = min(limits)
    seen = f"{name} leaves {least}, {wanted}"
    if least >= needed:
        return ok(what, seen)
    fitting = max(1, (least - _TASKS_BESIDE) // _TASKS_PER_BROWSER)
    return warn(what, seen, fix=f"raise it, or set JOB_CONCURRENCY to {fitting}")


def _left_in_groups(proc: Path, cgroup: Path) -> Iterator[tuple[int, Path]]:
    """How many more processes and threads each group that counts ours allows."""
    for folder in _groups(proc, cgroup):
        allowed, used = _number(folder / "pids.max"), _number(folder / "pids.current")
        if allowed is not None and used is not None:
            yield max(0, allowed - used), folder


def _groups(proc: Path, cgroup: Path) -> Iterator[Path]:
    mounts = {"": cgroup, "pids": cgroup / "pids"}
    yield from mounts.values()  # a container may see its own group there, under no name
    try:
        lines = (proc / "self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, path = line.split(":", 2)
        inside = PurePosixPath(path.lstrip("/"))
        for kind in set(kinds.split(",")) & mounts.keys():
            if ".." not in inside.parts:  # above the root that we see: it is somebody else's
                yield from (mounts[kind] / part for part in (inside, *inside.parents))


def _number(path: Path) -> int | None:
    """None: there is no such file, or it says that there is no limit."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def file_limit(settings: Settings) -> Finding:
    """Whether as many checks as asked for can have their sockets at once."""
    what = "open files"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = settings.uptime_concurrency * _FILES_PER_SLOT + _FILES_BESIDE
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return ok(what, f"limit {soft}, {needed} wanted for {settings.uptime_concurrency} slots")
    fitting = max(1, (soft - _FILES_BESIDE) // _FILES_PER_SLOT)
    raised = (
        f"ulimit -n {needed}"
        if hard == resource.RLIM_INFINITY or hard >= needed
        else (f"raise the hard limit {hard}")
    )
    seen = f"limit {soft}, {needed} wanted for {settings.uptime_concurrency} slots"
    return warn(what, seen, fix=f"{raised}, or set UPTIME_CONCURRENCY to {fitting} at most")
