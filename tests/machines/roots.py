"""Root folders of bare Debian machines, made once by debootstrap and copied for each use."""

import os
import platform
import shutil
import subprocess
import time
from pathlib import Path
from typing import Final

from tests.machines.surroundings import apt_sources, mirror_of

_README_NAMES: Final = ("python3", "make")
"""What the README asks of a machine, and nothing else."""
_KEPT_FOR_S: Final = 7 * 24 * 3600
"""A base root is made anew after so long: releases get updates, testing every day."""


class CannotMakeMachinesError(Exception):
    """This machine cannot make others; its text says why."""


class NoSuchReleaseError(Exception):
    """debootstrap did not make this release; its text says why."""


class Roots:
    """The base roots and their copies, in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def copy(self, release: str, name: str) -> Path:
        """Give a bare root of this release, which takes the place of the last one of that name."""
        base = self._base(release)
        root = self._folder / name
        self.remove(name)
        subprocess.run(["cp", "-a", "--reflink=auto", base, root], check=True)
        return root

    def remove(self, name: str) -> None:
        """Remove a copy."""
        shutil.rmtree(self._folder / name, ignore_errors=True)

    def _base(self, release: str) -> Path:
        base = self._folder / f"{release}-base"
        if base.is_dir() and time.time() - base.stat().st_mtime < _KEPT_FOR_S:
            return base
        partial = self._folder / f"{release}-partial"
        for old in (base, partial):
            shutil.rmtree(old, ignore_errors=True)
        partial.mkdir(parents=True)
        _debootstrap(release, partial)
        os.utime(partial)
        return partial.rename(base)


def require_means() -> None:
    """Install debootstrap where it is missing.

    Raises:
        CannotMakeMachinesError: bare machines cannot be made or entered here.
    """
    if os.geteuid() != 0:
        raise CannotMakeMachinesError("bare machines are made by root; start this as root")
    if _run("unshare", "--mount", "--pid", "--fork", "true").returncode != 0:
        raise CannotMakeMachinesError("unshare is refused here; start this outside of a container")
    if shutil.which("debootstrap"):
        return
    if shutil.which("apt-get") is None:
        raise CannotMakeMachinesError("debootstrap is missing, and there is no apt-get")
    environ = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    packages = "debootstrap debian-archive-keyring"
    for command in ("update", f"install -y --no-install-recommends {packages}"):
        done = _run("apt-get", *command.split(), environ=environ)
        if done.returncode != 0:
            raise CannotMakeMachinesError(f"apt-get {command} failed: {done.stdout[-500:]}")


def _debootstrap(release: str, target: Path) -> None:
    mirror = mirror_of(apt_sources(), release_here())
    # In a mount namespace of its own: what it mounts is gone when it is killed.
    done = _run(
        "unshare",
        "--mount",
        "debootstrap",
        "--variant=minbase",
        f"--include={','.join(_README_NAMES)}",
        release,
        str(target),
        *([mirror] if mirror else []),
    )
    if done.returncode != 0:
        raise NoSuchReleaseError(f"debootstrap of {release} failed:\n{done.stdout[-2000:]}")
    _run("chroot", str(target), "apt-get", "clean")


def release_here() -> str | None:
    """Give the codename of Debian's release that runs here; None on other distributions."""
    release = platform.freedesktop_os_release()
    return release.get("VERSION_CODENAME") if release["ID"] == "debian" else None


def _run(*command: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environ,
        check=False,
    )
