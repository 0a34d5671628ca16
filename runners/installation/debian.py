"""Installs Debian packages that this machine lacks, or names them in one sentence.

`python -m runners.installation.debian` does so before there is an environment.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from runners.installation.places import runtimes_folder
from runners.installation.progress import say

CHROMIUM: Final = "chromium-headless-shell"
CHROMIUM_PROGRAM: Final = Path("/usr/lib/chromium/chromium-headless-shell")
"""The program itself: Debian's command of that name is a shell script around it."""
_ROOTS: Final = Path("/etc/ssl/certs/ca-certificates.crt")
_ROOT: Final = 0
_LIMIT_S: Final = 1800


class MissingPackagesError(Exception):
    """Packages could not be installed; the text says why, and which command installs them."""


def has_apt() -> bool:
    """Whether this is Debian or a distribution derived from it."""
    return shutil.which("apt-get") is not None


def missing_packages(runtimes: Path) -> list[str]:
    """The packages for scripted checks and for HTTPS that this machine lacks.

    `runtimes`: their folder, which may hold a Chromium.
    """
    named = os.environ.get("CHROMIUM_PATH")
    places = [Path(named)] if named else [CHROMIUM_PROGRAM, runtimes / "chromium"]
    has_chromium = any(os.access(one, os.X_OK) for one in places)
    return [
        *([] if has_chromium else [CHROMIUM]),
        *([] if _ROOTS.exists() else ["ca-certificates"]),
    ]


def format_command(packages: Sequence[str]) -> str:
    """The command that an administrator runs as root."""
    install = " ".join(("apt-get install -y --no-install-recommends", *packages))
    return f"apt-get update && {install}"


def install(packages: Sequence[str]) -> None:
    """Install these as root, or with sudo.

    Raises:
        MissingPackagesError: without rights, or without a network, perhaps.
        OSError: a program does not start.
        subprocess.SubprocessError: one does not end.
    """
    if not packages:
        return
    names = " ".join(packages)
    if not has_apt():
        raise MissingPackagesError(f"not found, and there is no apt-get here: {names}")
    as_root = _find_root_prefix()
    if as_root is None:
        raise MissingPackagesError(
            f"missing: {names}. An administrator runs once, as root: {format_command(packages)}"
        )
    say(f"installing {names}")
    environment = (*as_root, "env", "DEBIAN_FRONTEND=noninteractive")
    _run((*as_root, "apt-get", "update"), packages)
    _run((*environment, "apt-get", "install", "-y", "--no-install-recommends", *packages), packages)


def _find_root_prefix() -> tuple[str, ...] | None:
    """What to put before a command. None: this user has no known way to become root."""
    if os.geteuid() == _ROOT:
        return ()
    if shutil.which("sudo") is None:
        return None
    # A person can give a password; nobody else must be asked for one.
    words = ("sudo",) if sys.stdin.isatty() else ("sudo", "-n")
    allowed = subprocess.run((*words, "true"), timeout=_LIMIT_S, check=False)  # noqa: S603 - our own command
    return words if allowed.returncode == 0 else None


def _run(command: Sequence[str], packages: Sequence[str]) -> None:
    done = subprocess.run(  # noqa: S603 - our own commands
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=_LIMIT_S,
        check=False,
    )
    if done.returncode:
        said, words = done.stdout.rstrip(), " ".join(command)
        raise MissingPackagesError(
            f"{said}\nfailed: {words}. To install by hand, as root: {format_command(packages)}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Install all that is missing, in one step; 1 without what is needed, else 0."""
    parser = argparse.ArgumentParser("python -m runners.installation.debian", description=__doc__)
    parser.add_argument("--needed", metavar="PACKAGE", nargs="*", default=[], help="no way without")
    parser.add_argument("--useful", metavar="PACKAGE", nargs="*", default=[], help="missing too")
    parser.add_argument("--scripts", action="store_true", help="scripted checks will run")
    given = parser.parse_args(arguments)
    useful = [*(_missing_for_scripts() if given.scripts else []), *given.useful]
    try:
        install([*given.needed, *useful])
    except (MissingPackagesError, OSError, subprocess.SubprocessError) as problem:
        say(str(problem))
        return 1 if given.needed else 0
    return 0


def _missing_for_scripts() -> list[str]:
    return missing_packages(runtimes_folder()) if has_apt() else []


if __name__ == "__main__":
    sys.exit(main())
