"""Root folders of bare Debian machines, made once by debootstrap and copied for each use."""

import os
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
        _require_debootstrap()
        partial = self._folder / f"{release}-partial"
        for old in (base, partial):
            shutil.rmtree(old, ignore_errors=True)
        partial.mkdir(parents=True)
        _debootstrap(release, partial)
        os.utime(partial)
        return partial.rename(base)


def _require_debootstrap() -> None:
    if os.geteuid() != 0:
        raise CannotMakeMachinesError("making machines needs root; start this as root")
    if shutil.which("debootstrap"):
        return
    if shutil.which("apt-get") is None:
        raise CannotMakeMachinesError("making machines needs debootstrap, and there is no apt-get")
    environ = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        "update",
        "install -y --no-install-recommends debootstrap debian-archive-keyring",
    ):
        done = _run("apt-get", *command.split(), environ=environ)
        if done.returncode != 0:
            raise CannotMakeMachinesError(f"apt-get {command} failed:\n{done.stdout}")


def _debootstrap(release: str, target: Path) -> None:
    mirror = mirror_of(apt_sources(), release) or mirror_of(apt_sources(), release_here())
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
        raise CannotMakeMachinesError(f"debootstrap of {release} failed:\n{done.stdout[-2000:]}")
    _run("chroot", str(target), "apt-get", "clean")


def release_here() -> str:
    """Give the codename of the release that runs here."""
    text = Path("/etc/os-release").read_text()
    names = [
        line.partition("=")[2] for line in text.splitlines() if line.startswith("VERSION_CODENAME=")
    ]
    return names[0].strip('"') if names else ""


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
