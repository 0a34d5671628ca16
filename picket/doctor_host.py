"""What `picket doctor` asks of this host: ping privilege, data folder, file limits, ports."""

import errno
import os
import resource
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from agent.ports import PortUnavailableError, open_port
from agent.settings import Settings
from contract.requests import IpFamily
from picket.findings import Finding, fail, ok, warn
from runners.kit.icmp.pinger import Pinger
from runners.kit.icmp.socket import PingerUnavailableError
from runners.kit.secrets.job_secrets import why_unhidden

_FILES_PER_SLOT: Final = 3
"""An HTTP check has a socket or two and may ask a name server meanwhile."""
_WHY_NOT: Final = {
    errno.EACCES: "this user may not write there",
    errno.EPERM: "this user may not write there",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "this user's share of the disk is full",
}
_FILES_BESIDE: Final = 64
"""Log, spool, health port, the way to the service."""


async def ping_privilege(family: IpFamily) -> Finding:
    """Whether ICMP checks of this family can run; must be called within a running loop."""
    what = f"ICMP {family}"
    pinger = Pinger()
    try:
        return ok(what, f"{pinger.privilege(family)} sockets")
    except PingerUnavailableError as problem:
        mend = "give the agent CAP_NET_RAW, or widen net.ipv4.ping_group_range to its group"
        seen = str(problem).partition(": ")[0]
        return (warn if family is IpFamily.IPV6 else fail)(what, seen, mend=mend)
    finally:
        pinger.close()


def data_folder(settings: Settings) -> Finding:
    """Whether results can wait on disk while the service is away."""
    what, folder = "data directory", settings.data_dir
    standing = _nearest(folder)
    if (because := _unusable_because(folder, standing)) is not None:
        return warn(
            what,
            f"{because}; results would wait in memory, and be lost at a restart",
            mend=_mend_of(folder, standing),
        )
    free_bytes = shutil.disk_usage(standing).free
    free = f"{free_bytes / 1024**3:.1f} GiB free"
    if free_bytes < settings.spool_max_bytes:
        return warn(
            what,
            f"{folder} has {free}, less than SPOOL_MAX_BYTES ({settings.spool_max_bytes})",
            mend="free some space, or lower SPOOL_MAX_BYTES",
        )
    return ok(what, f"{folder}, {free}")


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists: the agent makes the rest."""
    # Not Path.exists, which raises below a folder that this user may not look into.
    return next(path for path in (folder, *folder.parents) if os.path.exists(path))  # noqa: PTH110


def _unusable_because(folder: Path, standing: Path) -> str | None:
    """Why the folder cannot be kept there, found by trying. None: it can."""
    if not standing.is_dir():
        rest = "" if standing == folder else f", so {folder} cannot be made"
        return f"{standing} is a file{rest}"
    try:
        with TemporaryDirectory(prefix=".picket-doctor-", dir=standing):
            return None
    except OSError as problem:
        because = _WHY_NOT.get(problem.errno or 0, f"{standing} takes no files")
        return f"{folder} cannot be {'written' if standing == folder else 'made'}: {because}"


def _mend_of(folder: Path, standing: Path) -> str:
    if standing.is_dir():
        return f"make {folder} and give it to this user, or set AGENT_DATA_DIR"
    return "set AGENT_DATA_DIR to a folder of its own"


def unhidden_secrets(settings: Settings) -> list[Finding]:
    """Secrets that results may show, since hiding them would hide half of the result."""
    return [
        warn("secrets", f"{name} cannot be hidden in results: {because}", mend="use another value")
        for name, value in settings.service_secrets.items()
        if (because := why_unhidden(value)) is not None
    ]


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
    return warn(what, seen, mend=f"{raised}, or set UPTIME_CONCURRENCY to {fitting} at most")


def ports_are_free(settings: Settings) -> list[Finding]:
    """Whether the agent could listen where it wants to."""
    health, heartbeat = settings.health_port, settings.heartbeat_port
    first = port_is_free("AGENT_HEALTH_PORT", health)
    if heartbeat and heartbeat == health:
        seen = f"port {heartbeat} is AGENT_HEALTH_PORT's already"
        return [first, fail("HEARTBEAT_PORT", seen, mend="use another port, or 0 for none")]
    return [first, port_is_free("HEARTBEAT_PORT", heartbeat)]


def port_is_free(name: str, port: int) -> Finding:
    """Whether the agent could listen there."""
    if port == 0:
        return ok(name, "0: a free one is taken" if name == "AGENT_HEALTH_PORT" else "off")
    try:
        open_port(name, port).close()
    except PortUnavailableError as problem:
        because = str(problem).partition(", but ")[2].partition("; ")[0]
        mend = f"set {name} to a port from 1024 on, or to 0"
        if _is_taken(problem):
            mend = f"fine when the agent runs already; else stop what listens there or set {name}"
        return warn(name, f"port {port}: {because}", mend=mend)
    return ok(name, f"port {port} is free")


def _is_taken(problem: PortUnavailableError) -> bool:
    return isinstance(problem.__cause__, OSError) and problem.__cause__.errno == errno.EADDRINUSE
