"""What `picket doctor` asks of this host: ping privilege, data folder, file limits, ports."""

import os
import resource
import shutil
from pathlib import Path
from typing import Final

from agent.ports import PortUnavailableError, open_port
from agent.settings import Settings
from contract.checks import IpFamily
from picket.findings import Finding, fail, ok, warn
from runners.kit.icmp import Pinger
from runners.kit.icmp_socket import PingerUnavailableError
from runners.kit.scrub import Scrubber

_FILES_PER_SLOT: Final = 3
"""An HTTP check has a socket or two and may ask a name server meanwhile."""
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
        return (warn if family is IpFamily.IPV6 else fail)(what, str(problem), mend=mend)
    finally:
        pinger.close()


def data_folder(settings: Settings) -> Finding:
    """Whether results can wait on disk while the service is away."""
    what, folder = "data directory", settings.data_dir
    standing = _nearest(folder)
    if not (standing.is_dir() and os.access(standing, os.W_OK | os.X_OK)):
        return warn(
            what,
            f"{folder} cannot be written; results would wait in memory",
            mend=f"make {folder} and give it to this user, or set AGENT_DATA_DIR",
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
    return next(path for path in (folder, *folder.parents) if path.exists())


def unhidden_secrets(settings: Settings) -> list[Finding]:
    """Secrets that results may show, since hiding them would hide half of the result."""
    return [
        warn("secrets", f"{name} cannot be hidden in results", mend="use a longer value")
        for name, value in settings.service_secrets.items()
        if Scrubber([value]).skipped
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


def port_is_free(name: str, port: int) -> Finding:
    """Whether the agent could listen there."""
    if port == 0:
        return ok(name, "0: a free one is taken" if name == "AGENT_HEALTH_PORT" else "off")
    try:
        open_port(name, port).close()
    except PortUnavailableError as problem:
        return warn(
            name,
            str(problem).partition("; ")[0],
            mend=f"fine when the agent runs already; else stop what listens there or set {name}",
        )
    return ok(name, f"port {port} is free")
