"""What `picket doctor` asks of this host: ping privilege, folders, egress rules, ports."""

import errno
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from agent.self_test import ICMP_REMEDY
from agent.settings import Settings
from agent.telemetry.http_server import PortUnavailableError, open_port
from contract.requests import IpFamily
from picket.doctor.findings import Finding, fail, ok, warn
from redaction.policy import why_unhidden
from runners.net.icmp.pinger import Pinger
from runners.net.icmp.socket import PingerUnavailableError
from sandbox.limits import require_free_disk

_WHY_NOT: Final = {
    errno.EACCES: "this user may not write there",
    errno.EPERM: "this user may not write there",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "this user's share of the disk is full",
}
_FIXES: Final = {
    errno.EROFS: "mount it so that it can be written",
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there, or raise this user's quota",
}
"""Without these it is for this user to be let in."""
_PROBE_BYTES: Final = 64 * 1024
"""A full disk still makes folders, and takes what fits into the last page."""
_PROBE: Final = ".picket-doctor-"
_EVERYTHING: Final = frozenset({4, 6})


@dataclass(frozen=True, slots=True)
class _Unusable:
    """Why a folder takes no files."""

    seen: str
    fix: str
    """Empty: nothing that is known."""


async def ping_privilege(family: IpFamily) -> Finding:
    """Whether ICMP checks of this family can run; must be called within a running loop."""
    what = f"ICMP {family}"
    pinger = Pinger()
    try:
        return ok(what, f"{pinger.privilege(family)} sockets")
    except PingerUnavailableError as problem:
        seen = str(problem).partition(": ")[0]
        return (warn if family is IpFamily.IPV6 else fail)(what, seen, fix=ICMP_REMEDY)
    finally:
        pinger.close()


def data_folder(settings: Settings) -> Finding:
    """Whether results can wait on disk while the service is away."""
    what, folder = "data directory", settings.data_dir
    standing = _nearest(folder)
    if (unusable := _why_unusable(folder, standing)) is not None:
        seen = f"{unusable.seen}; results would wait in memory, and be lost at a restart"
        if unusable.fix:
            return fail(what, seen, fix=f"{unusable.fix}, or set AGENT_DATA_DIR to another folder")
        return warn(what, seen, fix=_fix_of(folder, standing))
    free_bytes = shutil.disk_usage(standing).free
    free = f"{free_bytes / 1024**3:.1f} GiB free"
    if free_bytes < settings.spool_max_bytes:
        return warn(
            what,
            f"{folder} has {free}, less than SPOOL_MAX_BYTES ({settings.spool_max_bytes})",
            fix="free some space, or lower SPOOL_MAX_BYTES",
        )
    return ok(what, f"{folder}, {free}")


def temporary_folder(named: str | None) -> Finding:
    """Whether runs can have their folders; `named` is TMPDIR. None: it is not set."""
    what = "temporary files"
    if named is not None and (unusable := _why_unusable(Path(named), Path(named))) is not None:
        fix = unusable.fix or f"make {named} and give it to this user"
        return fail(what, unusable.seen, fix=f"{fix}, or set TMPDIR to another folder")
    try:
        folder = Path(tempfile.gettempdir())
        with TemporaryDirectory(prefix=_PROBE, dir=folder) as probe:
            require_free_disk(Path(probe))
    except OSError as problem:
        seen = str(problem.strerror or problem)
        return fail(what, seen, fix="free some space there, or set TMPDIR to another folder")
    return ok(what, f"{folder}, {shutil.disk_usage(folder).free / 1024**3:.1f} GiB free")


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists: the agent makes the rest."""
    # Not Path.exists, which raises below a folder that this user may not look into.
    return next(path for path in (folder, *folder.parents) if os.path.exists(path))  # noqa: PTH110


def _why_unusable(folder: Path, standing: Path) -> _Unusable | None:
    """Why the folder cannot be kept there, found by trying. None: it can."""
    if not standing.is_dir():
        rest = "" if standing == folder else f", so {folder} cannot be made"
        is_there = os.path.lexists(standing)
        return _Unusable(f"{standing} is {'a file' if is_there else 'not there'}{rest}", "")
    try:
        with TemporaryDirectory(prefix=_PROBE, dir=standing) as probe:
            (Path(probe) / "file").write_bytes(bytes(_PROBE_BYTES))
    except OSError as problem:
        number = problem.errno or 0
        because = _WHY_NOT.get(number, f"{standing} takes no files")
        done = "written" if standing == folder else "made"
        return _Unusable(f"{folder} cannot be {done}: {because}", _FIXES.get(number, ""))
    return None


def _fix_of(folder: Path, standing: Path) -> str:
    if standing.is_dir():
        return f"make {folder} and give it to this user, or set AGENT_DATA_DIR to another folder"
    return "set AGENT_DATA_DIR to a folder of its own"


def egress_rules(settings: Settings) -> Finding:
    """Whether the rules leave anything that a check may reach."""
    denied = settings.egress.deny
    versions = {network.version for network in denied.networks if network.mask == 0}
    if "*" in denied.names or versions >= _EVERYTHING:
        return fail(
            "egress",
            "EGRESS_DENY names everything, and wins over EGRESS_ALLOW: no check reaches anything",
            fix="name in EGRESS_DENY only what checks may not reach",
        )
    for version in versions:
        return warn(
            "egress",
            f"EGRESS_DENY names every IPv{version} address",
            fix=f"leave it if checks are to use IPv{10 - version} alone",
        )
    return ok("egress", "the rules leave something to reach")


def unhidden_secrets(settings: Settings) -> list[Finding]:
    """Secrets that results may show, since hiding them would hide half of the result."""
    return [
        warn("secrets", f"{name} cannot be hidden in results: {because}", fix="use another value")
        for name, value in settings.service_secrets.items()
        if (because := why_unhidden(value)) is not None
    ]


def ports_are_free(settings: Settings) -> list[Finding]:
    """Whether the agent could listen where it wants to."""
    health, heartbeat = settings.health_port, settings.heartbeat_port
    first = port_is_free("AGENT_HEALTH_PORT", health)
    if heartbeat and heartbeat == health:
        seen = f"port {heartbeat} is AGENT_HEALTH_PORT's already"
        return [first, fail("HEARTBEAT_PORT", seen, fix="use another port, or 0 for none")]
    return [first, port_is_free("HEARTBEAT_PORT", heartbeat)]


def port_is_free(name: str, port: int) -> Finding:
    """Whether the agent could listen there."""
    if port == 0:
        return ok(name, "0: a free one is taken" if name == "AGENT_HEALTH_PORT" else "off")
    try:
        open_port(name, port).close()
    except PortUnavailableError as problem:
        because = str(problem).partition(", but ")[2].partition("; ")[0]
        fix = f"set {name} to a port from 1024 on, or to 0"
        if _is_taken(problem):
            fix = f"fine when the agent runs already; else stop what listens there or set {name}"
        return warn(name, f"port {port}: {because}", fix=fix)
    return ok(name, f"port {port} is free")


def _is_taken(problem: PortUnavailableError) -> bool:
    return isinstance(problem.__cause__, OSError) and problem.__cause__.errno == errno.EADDRINUSE
