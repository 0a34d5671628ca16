"""What `picket doctor` checks on this host: pings, folders, egress rules, ports, limits."""

import errno
import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from agent.settings import Settings
from agent.settings_table import BYTES_PER_MAIN_JOB, free_memory_bytes
from agent.telemetry.http_server import PortUnavailableError, open_port
from contract.requests import IpFamily
from picket.doctor.findings import Finding, fail, ok, warn
from redaction.policy import why_unhidden
from runners.net.icmp.pinger import Pinger
from runners.net.icmp.socket import ICMP_REMEDY, PingerUnavailableError
from sandbox.limits import require_free_disk

_WHY_NOT: Final = {
    errno.EACCES: "this user cannot write there",
    errno.EPERM: "this user cannot write there",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "this user's disk quota is used up",
}
_FIXES: Final = {
    errno.EROFS: "remount it read-write",
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there, or raise this user's quota",
}
"""How to fix an error; for all others the user needs access to the folder."""
_PROBE_BYTES: Final = 64 * 1024
"""The size of a test file; a full disk still accepts folders and less than a page."""
_PROBE: Final = ".picket-doctor-"
_EVERYTHING: Final = frozenset({4, 6})


@dataclass(frozen=True, slots=True)
class _Unusable:
    """Why a folder takes no files."""

    seen: str
    fix: str
    """How to fix it. Empty: there is no known fix."""


async def check_ping_privilege(family: IpFamily) -> Finding:
    """Whether ICMP checks of this family can run; must be called within a running loop."""
    what = f"ICMP {family}"
    pinger = Pinger()
    try:
        return ok(what, f"{pinger.privilege(family)} sockets")
    except PingerUnavailableError as problem:
        seen = str(problem).partition("; ")[0]
        return (warn if family is IpFamily.IPV6 else fail)(what, seen, fix=ICMP_REMEDY)
    finally:
        pinger.close()


def check_data_folder(settings: Settings) -> Finding:
    """Whether results can wait on disk while the service is away."""
    what, folder = "data directory", settings.data_dir
    standing = _find_existing_parent(folder)
    if (unusable := _why_unusable(folder, standing)) is not None:
        seen = f"{unusable.seen}; results would wait in memory, and be lost at a restart"
        if unusable.fix:
            return fail(what, seen, fix=f"{unusable.fix}, or set AGENT_DATA_DIR to another folder")
        return warn(what, seen, fix=_suggest_fix(folder, standing))
    free_bytes = shutil.disk_usage(standing).free
    free = f"{free_bytes / 1024**3:.1f} GiB free"
    if free_bytes < settings.spool_max_bytes:
        return warn(
            what,
            f"{folder} has {free}, less than SPOOL_MAX_BYTES ({settings.spool_max_bytes})",
            fix="free some space, or lower SPOOL_MAX_BYTES",
        )
    return ok(what, f"{folder}, {free}")


def check_temporary_folder(named: str | None) -> Finding:
    """Whether runs can have their folders; `named` is TMPDIR. None: it is not set."""
    what = "temporary files"
    if named is not None and (unusable := _why_unusable(Path(named), Path(named))) is not None:
        fix = unusable.fix or f"create {named} and make this user its owner"
        return fail(what, unusable.seen, fix=f"{fix}, or set TMPDIR to another folder")
    try:
        folder = Path(tempfile.gettempdir())
        with TemporaryDirectory(prefix=_PROBE, dir=folder) as probe:
            require_free_disk(Path(probe))
    except OSError as problem:
        seen = str(problem.strerror or problem)
        return fail(what, seen, fix="free some space there, or set TMPDIR to another folder")
    return ok(what, f"{folder}, {shutil.disk_usage(folder).free / 1024**3:.1f} GiB free")


def _find_existing_parent(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists: the agent makes the rest."""
    # Not Path.exists, which raises below a folder that this user may not look into.
    return next(path for path in (folder, *folder.parents) if os.path.exists(path))  # noqa: PTH110


def _why_unusable(folder: Path, standing: Path) -> _Unusable | None:
    """Why the folder cannot be kept there, found by trying. None: it can."""
    if not standing.is_dir():
        rest = "" if standing == folder else f", so {folder} cannot be created"
        is_there = os.path.lexists(standing)
        return _Unusable(f"{standing} is {'a file' if is_there else 'missing'}{rest}", "")
    try:
        with TemporaryDirectory(prefix=_PROBE, dir=standing) as probe:
            (Path(probe) / "file").write_bytes(bytes(_PROBE_BYTES))
    except OSError as problem:
        number = problem.errno or 0
        because = _WHY_NOT.get(number, f"{standing} accepts no files")
        done = "written" if standing == folder else "created"
        return _Unusable(f"{folder} cannot be {done}: {because}", _FIXES.get(number, ""))
    return None


def _suggest_fix(folder: Path, standing: Path) -> str:
    if standing.is_dir():
        return (
            f"create {folder} and make this user its owner, or set AGENT_DATA_DIR to another folder"
        )
    return "set AGENT_DATA_DIR to a folder of its own"


def check_egress_rules(settings: Settings) -> Finding:
    """Whether the rules leave anything that a check may reach."""
    denied = settings.egress.deny
    versions = {network.version for network in denied.networks if network.mask == 0}
    if "*" in denied.names or versions >= _EVERYTHING:
        return fail(
            "egress",
            "EGRESS_DENY denies everything and overrides EGRESS_ALLOW: checks can reach nothing",
            fix="list in EGRESS_DENY only what checks may not reach",
        )
    for version in versions:
        return warn(
            "egress",
            f"EGRESS_DENY denies every IPv{version} address",
            fix=f"ignore this if checks should use IPv{10 - version} only",
        )
    return ok("egress", "the rules allow some targets")


def find_unhidden_secrets(settings: Settings) -> list[Finding]:
    """Secrets that results may show, since hiding them would hide half of the result."""
    return [
        warn("secrets", f"{name} cannot be hidden in results: {because}", fix="use another value")
        for name, value in settings.service_secrets.items()
        if (because := why_unhidden(value)) is not None
    ]


_ALL_ADDRESSES: Final = frozenset({"", "0.0.0.0", "::"})


def check_health_port(settings: Settings) -> Finding:
    """Whether the agent could answer probes and metrics."""
    return check_port("AGENT_HEALTH_PORT", settings.health_port, host=settings.health_host)


def check_ping_port(settings: Settings) -> Finding:
    """Whether the agent could take pings."""
    health, heartbeat = settings.health_port, settings.heartbeat_port
    hosts = {settings.health_host, settings.heartbeat_host}
    if heartbeat and heartbeat == health and (len(hosts) == 1 or hosts & _ALL_ADDRESSES):
        seen = f"port {heartbeat} is also AGENT_HEALTH_PORT"
        return fail("HEARTBEAT_PORT", seen, fix="use another port, or 0 for none")
    return check_port("HEARTBEAT_PORT", heartbeat, host=settings.heartbeat_host)


def check_port(name: str, port: int, *, host: str = "") -> Finding:
    """Whether the agent could listen there; host "" means every address of the machine."""
    if port == 0:
        return ok(name, "0: the agent picks a free port" if name == "AGENT_HEALTH_PORT" else "off")
    try:
        open_port(name, port, host=host).close()
    except PortUnavailableError as problem:
        said, _, advice = str(problem).partition("; ")
        because = said.partition(", but ")[2]
        if not said.startswith(name):
            return fail(name, said, fix=advice)
        fix = f"set {name} to a port from 1024 on, or to 0"
        if _is_taken(problem):
            fix = (
                f"ignore this if the agent is running; else stop what listens there, or set {name}"
            )
        return warn(name, f"port {port}: {because}", fix=fix)
    return ok(name, f"port {port} is free")


def _is_taken(problem: PortUnavailableError) -> bool:
    return isinstance(problem.__cause__, OSError) and problem.__cause__.errno == errno.EADDRINUSE


_FILES_PER_SLOT: Final = 3
"""An HTTP check has one or two sockets, and a third while it queries a name server."""
_FILES_BESIDE: Final = 64
"""Descriptors that the agent needs besides: log, spool, health port, service connections."""
_TASKS_PER_BROWSER: Final = 100
"""Processes and threads of a suite and Chromium; one with one page was measured to have 76."""
_TASKS_BESIDE: Final = 64
_GIGA: Final = 1_000_000_000
_CGROUP: Final = Path("/sys/fs/cgroup")
_PROC: Final = Path("/proc")


def check_memory(settings: Settings, free_bytes: int | None = None) -> Finding:
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


def check_process_limit(
    settings: Settings, *, proc: Path = _PROC, cgroup: Path = _CGROUP
) -> Finding:
    """Whether as many browsers as asked for may have their processes and threads at once."""
    what = "processes"
    needed = settings.job_concurrency * _TASKS_PER_BROWSER + _TASKS_BESIDE
    wanted = f"{needed} needed for JOB_CONCURRENCY {settings.job_concurrency}"
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


def check_file_limit(settings: Settings) -> Finding:
    """Whether as many checks as asked for can have their sockets at once."""
    what = "open files"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = settings.uptime_concurrency * _FILES_PER_SLOT + _FILES_BESIDE
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return ok(what, f"limit {soft}, {needed} needed for {settings.uptime_concurrency} slots")
    fitting = max(1, (soft - _FILES_BESIDE) // _FILES_PER_SLOT)
    raised = (
        f"ulimit -n {needed}"
        if hard == resource.RLIM_INFINITY or hard >= needed
        else (f"raise the hard limit {hard}")
    )
    seen = f"limit {soft}, {needed} needed for {settings.uptime_concurrency} slots"
    return warn(what, seen, fix=f"{raised}, or set UPTIME_CONCURRENCY to {fitting} at most")
