"""The folder that `picket up` keeps between starts: keys, ports, the service's data, logs."""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

import msgspec

from picket.errors import CommandError
from picket.up.demo_target import DemoPorts
from sandbox.spawn import can_have_own_users

_MARK: Final = "picket-up.json"
"""Tells our folder from somebody else's; holds the demo target's ports, which outlive --fresh."""
_URL_FILE: Final = "service-url"
_URL: Final = re.compile(r"http://[\d.]+:(\d{1,5})", re.ASCII)
_HIGHEST_PORT: Final = 65_535
_LOCK: Final = "lock"
_PID_BYTES: Final = 20
_OURS_ALONE: Final = 0o700
_PASSED_BY_OTHERS: Final = 0o711
"""They come to what they may read below, and list nothing."""


@dataclass(frozen=True, slots=True)
class DataDir:
    """Paths in the folder, and what is kept in files of its own."""

    path: Path

    @property
    def service(self) -> Path:
        """Of the service: its database."""
        return self.path / "service"

    @property
    def agent(self) -> Path:
        """Of the agent: its spool."""
        return self.path / "agent"

    @property
    def logs(self) -> Path:
        """One file per child."""
        return self.path / "logs"

    @property
    def traces(self) -> Path:
        """Of browser checks that failed."""
        return self.path / "traces"

    @property
    def api_key_file(self) -> Path:
        """The first API key, readable by its owner alone."""
        return self.path / "api-key"

    @property
    def location_key_file(self) -> Path:
        """The private location's key, readable by its owner alone."""
        return self.path / "location-key"

    @property
    def service_url_file(self) -> Path:
        """The address of the service, for scripts and for the next start."""
        return self.path / _URL_FILE

    def service_url(self) -> str | None:
        """Where the service listened the last time. None: it never did."""
        try:
            found = _URL.fullmatch(self.service_url_file.read_text().strip())
        except (OSError, UnicodeDecodeError):
            return None
        return found[0] if found else None

    def is_in_use(self) -> bool:
        """Whether a `picket up` holds the folder now, so that its address is ours."""
        try:
            with (self.path / _LOCK).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def service_port(self) -> int | None:
        """The port of that address. None: there is none."""
        url = self.service_url()
        port = int(url.rpartition(":")[2]) if url else 0
        return port if 0 < port <= _HIGHEST_PORT else None

    def keep_service_url(self, url: str) -> None:
        """Remember it for the next start."""
        self.service_url_file.write_text(f"{url}\n")

    def make_keys(self) -> None:
        """Make both keys at the first start; the service takes them as its own."""
        for file, prefix in ((self.api_key_file, "cu_"), (self.location_key_file, "pl_")):
            if not file.exists():
                _write_secret(file, prefix + secrets.token_urlsafe(32))

    def api_key(self) -> str:
        """The API key, once it is made."""
        return self.api_key_file.read_text().strip()

    def demo_ports(self) -> DemoPorts:
        """Where the demo target listened the last time; zeros at the first start."""
        try:
            return msgspec.json.decode((self.path / _MARK).read_bytes(), type=DemoPorts)
        except (FileNotFoundError, msgspec.DecodeError):
            return DemoPorts()

    def keep_demo_ports(self, ports: DemoPorts) -> None:
        """Remember them for the next start."""
        (self.path / _MARK).write_bytes(msgspec.json.encode(ports))


@contextmanager
def open_data_dir(path: Path, *, fresh: bool) -> Iterator[DataDir]:
    """The folder, made when it is missing and emptied when asked; ours alone while in use.

    Raises:
        CommandError: it cannot be written, holds something else, or another `up` uses it.
    """
    with _opened(path) as lock:
        _take(lock.fileno(), path)
        with _as_sentences():
            if fresh:
                _empty(path)
            folder = _prepare(path)
        yield folder


def _opened(path: Path) -> TextIO:
    with _as_sentences():
        path.mkdir(mode=_OURS_ALONE, parents=True, exist_ok=True)
        if any(path.iterdir()) and not (path / _MARK).exists():
            raise CommandError(f"{path} holds something else; give --data-dir a folder of its own")
        lock = (path / _LOCK).open("a+")
        os.fchmod(lock.fileno(), 0o600)  # who can open it could hold it
        return lock


@contextmanager
def _as_sentences() -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise CommandError(
            f"{problem.filename} cannot be used: {problem.strerror}; try another --data-dir"
        ) from problem


def _take(lock: int, path: Path) -> None:
    """The lock's file tells whose it is."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as problem:
        whose = os.pread(lock, _PID_BYTES, 0).decode(errors="replace")
        named = f" (process {whose})" if whose.isdecimal() else ""
        raise CommandError(
            f"another `picket up`{named} uses {path}; stop it, or use another folder, as in "
            'picket up --data-dir other, or make run ARGS="--data-dir other"'
        ) from problem
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)


def _empty(path: Path) -> None:
    for entry in path.iterdir():
        if entry.name in {_LOCK, _MARK, _URL_FILE}:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _prepare(path: Path) -> DataDir:
    folder = DataDir(path.resolve())
    for part in (folder.service, folder.agent, folder.logs, folder.traces):
        part.mkdir(mode=_OURS_ALONE, exist_ok=True)
        part.chmod(_OURS_ALONE)
    for part in (folder.path, folder.agent):
        part.chmod(_way_to_packages())
    if not (path / _MARK).exists():
        folder.keep_demo_ports(DemoPorts())
    return folder


def _way_to_packages() -> int:
    """The agent keeps packages of suites where the users that these run as can get to them."""
    return _PASSED_BY_OTHERS if can_have_own_users() else _OURS_ALONE


def _write_secret(file: Path, secret: str) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as kept:
        kept.write(secret)
