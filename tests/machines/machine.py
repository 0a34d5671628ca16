"""A root folder entered as a machine of its own: its processes, mounts, /dev/shm and /run."""

import os
import shlex
import socket
import stat
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.machines.surroundings import Surroundings

_GUEST_UID: Final = 1000
_BIN: Final = "/usr/local/bin:/usr/bin:/bin"
_SLOT_LOCKS: Final = Path("/run/picket-slots")
"""Where agents lock the users that they lend to runs; see `sandbox/users.py`."""


@dataclass(frozen=True, slots=True)
class User:
    """Who runs a command inside."""

    name: str
    uid: int
    home: str
    path: str
    """The value of PATH that a login gives."""


ROOT: Final = User("root", 0, "/root", f"/usr/local/sbin:/usr/sbin:/sbin:{_BIN}")
GUEST: Final = User("guest", _GUEST_UID, "/home/guest", f"{_BIN}:/usr/local/games:/usr/games")
"""An ordinary user; a bare machine has no sudo."""


@dataclass(frozen=True, slots=True)
class Run:
    """A command that ended."""

    code: int
    lines: tuple[str, ...]
    """What it wrote, errors among it."""
    line_times_s: tuple[float, ...]
    """Since its start, one for each line."""
    took_s: float

    @property
    def text(self) -> str:
        """All that it wrote."""
        return "\n".join(self.lines)


class Machine:
    """A bare machine with a guest and a clone in the home of each user."""

    def __init__(self, root: Path, surroundings: Surroundings, logs: Path) -> None:
        self.root = root
        self._surroundings = surroundings
        self._logs = logs

    def set_up(self, commit: Path) -> None:
        """Pass on the surroundings, add the guest, unpack the commit for each user."""
        self._surroundings.write_system_files(self.root)
        (self.root / "etc/hostname").write_text(f"{socket.gethostname()}\n")
        with (self.root / "etc/hosts").open("a") as hosts:
            hosts.write(f"127.0.1.1 {socket.gethostname()}\n")
        added = f"useradd --create-home --uid {GUEST.uid} --shell /bin/bash {GUEST.name}"
        self._chroot(f"{added}; chmod 700 {GUEST.home} {ROOT.home}")
        # Debootstrap makes the devices of a chroot; a machine has this one as well.
        tunnel = self.inside("/dev/net/tun")
        tunnel.parent.mkdir()
        os.mknod(tunnel, stat.S_IFCHR, os.makedev(10, 200))
        tunnel.chmod(0o666)
        for user in (ROOT, GUEST):
            clone = self.inside(f"{user.home}/picket")
            clone.mkdir()
            subprocess.run(["tar", "-x", "-f", commit, "-C", clone], check=True)
            self._surroundings.write_home_files(self.root, user.home, user.uid)

    def inside(self, path: str) -> Path:
        """Where a path of this machine lies outside."""
        return self.root / path.removeprefix("/")

    def used_mb(self) -> int:
        """What lies on its disk."""
        done = subprocess.run(
            ["du", "-s", "--block-size=1M", self.root], capture_output=True, text=True, check=True
        )
        return int(done.stdout.split()[0])

    def run(self, command: str, *, user: User, folder: str, log: str, limit_s: float) -> Run:
        """Run a shell's command as a login of that user would; killed with all that it started."""
        began = time.monotonic()
        lines, times_s = [], []
        with (self._logs / log).open("w") as file:
            process = subprocess.Popen(
                self._command(command, user, folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
            timer = threading.Timer(limit_s, process.kill)
            timer.start()
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    lines.append(line.rstrip("\n"))
                    times_s.append(time.monotonic() - began)
                    file.write(line)
                    file.flush()
                code = process.wait()
            finally:
                timer.cancel()
                process.kill()
        return Run(code, tuple(lines), tuple(times_s), time.monotonic() - began)

    def _command(self, command: str, user: User, folder: str) -> list[str]:
        environ = {
            **self._surroundings.environ,
            "HOME": user.home,
            "USER": user.name,
            "LOGNAME": user.name,
            "SHELL": "/bin/bash",
            "PATH": user.path,
        }
        login = ["setpriv", f"--reuid={user.uid}", f"--regid={user.uid}", "--init-groups"]
        settings = [f"{name}={value}" for name, value in environ.items()]
        inner = [*login, "env", "-i", f"--chdir={folder}", *settings, "sh", "-c", command]
        spaces = ["--mount", "--pid", "--ipc", "--fork", "--kill-child"]
        # When this program is killed, so is all inside.
        return [
            "setpriv",
            "--pdeathsig=KILL",
            "unshare",
            *spaces,
            "sh",
            "-euc",
            self._enter(),
            "enter",
            *inner,
        ]

    def _enter(self) -> str:
        """A shell's script for the first process inside."""
        root = shlex.quote(str(self.root))
        mounts = [
            f"mount --bind {root} {root}",
            f"cd {root}",
            "mount -t proc proc proc",
            "mount --rbind /sys sys",
            "mount -t tmpfs -o mode=1777 tmpfs dev/shm",
            "mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts dev/pts",
            "mount -t tmpfs -o mode=0755 tmpfs run",
            "mkdir -m 1777 run/lock",
            # User ids are the host's: an agent there and one inside must not lend the same one.
            f"mkdir -m 0700 -p {_SLOT_LOCKS} run/{_SLOT_LOCKS.name}",
            f"mount --bind {_SLOT_LOCKS} run/{_SLOT_LOCKS.name}",
            *(self._mount(*each) for each in self._surroundings.mounts.items()),
        ]
        # Not chroot: a process in one may make no user namespace, and its root is no mount.
        turn = ["pivot_root . .", "umount -l .", "cd /"]
        # As the first process it stays, and takes in orphans as any init does.
        return "\n".join([*mounts, *turn, """exec /bin/sh -c '"$@"; exit $?' init "$@" """])

    def _mount(self, outside: Path, inside: Path) -> str:
        target = self.root / inside.relative_to("/")
        made = f"mkdir -p {shlex.quote(str(target if outside.is_dir() else target.parent))}"
        if not outside.is_dir():
            made += f"; touch {shlex.quote(str(target))}"
        source, place = shlex.quote(str(outside)), shlex.quote(str(target))
        return f"{made}; mount --bind {source} {place}; mount -o remount,bind,ro {place}"

    def _chroot(self, command: str) -> None:
        subprocess.run(["chroot", self.root, "sh", "-euc", command], check=True)
