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
from picket.up.addresses import Addresses
from picket.up.demo_target import DemoPorts
from sandbox.spawn import can_have_own_users

_MARK: Final = "picket-up.json"
"""Marks a folder of `picket up`; it has the demo target's ports, which survive --fresh."""
_URL_FILE: Final = "service-url"
_PING_URL_FILE: Final = "ping-url"
_URL: Final = re.compile(r"http://[\d.]+:(\d{1,5})", re.ASCII)
_HIGHEST_PORT: Final = 65_535
_LOCK: Final = "lock"
_PID_BYTES: Final = 20
_PRIVATE: Final = 0o700
_TRAVERSABLE: Final = 0o711
"""Other users may enter subfolders whose names they know, and list nothing."""


@dataclass(frozen=True, slots=True)
class DataDir:
    """Paths in the folder, and the values in its files."""

    path: Path

    @property
    def service(self) -> Path:
        """The data folder of the service, with its database."""
        return self.path / "service"

    @property
    def agent(self) -> Path:
        """The data folder of the agent, with its spool."""
        return self.path / "agent"

    @property
    def logs(self) -> Path:
        """Log files, one per child process."""
        return self.path / "logs"

    @property
    def traces(self) -> Path:
        """Traces of failed browser checks."""
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

    @property
    def ping_url_file(self) -> Path:
        """The address of the agent's ping port, for jobs and for the next start."""
        return self.path / _PING_URL_FILE

    def service_url(self) -> str | None:
        """Where the service listened the last time. None: it never did."""
        return self.addresses().service_url

    def addresses(self) -> Addresses:
        """Where service and agent listened the last time."""
        return Addresses(
            service_url=_read_url(self.service_url_file), ping_url=_read_url(self.ping_url_file)
        )

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

    def keep_addresses(self, addresses: Addresses) -> None:
        """Remember them for the next start."""
        files = ((self.service_url_file, addresses.service_url),)
        for file, url in (*files, (self.ping_url_file, addresses.ping_url)):
            if url is not None:
                file.write_text(f"{url}\n")

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


def _read_url(file: Path) -> str | None:
    """The address in the file. None: there is none that could be used."""
    try:
        found = _URL.fullmatch(file.read_text().strip())
    except (OSError, UnicodeDecodeError):
        return None
    return found[0] if found and 0 < int(found[1]) <= _HIGHEST_PORT else None


@contextmanager
def open_data_dir(path: Path, *, fresh: bool) -> Iterator[DataDir]:
    """The folder, made when it is missing and emptied when asked; ours alone while in use.

    Raises:
        CommandError: it cannot be written, holds something else, or another `up` uses it.
    """
    with _open_lock(path) as lock:
        _take(lock.fileno(), path)
        with _explain_os_errors():
            if fresh:
                _empty(path)
            folder = _prepare(path)
        yield folder


def _open_lock(path: Path) -> TextIO:
    with _explain_os_errors():
        path.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        if any(path.iterdir()) and not (path / _MARK).exists():
            raise CommandError(
                f"{path} is not empty and not a folder of `picket up`; use another --data-dir"
            )
        lock = (path / _LOCK).open("a+")
        os.fchmod(lock.fileno(), 0o600)  # who can open it could hold it
        return lock


@contextmanager
def _explain_os_errors() -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise CommandError(
            f"{problem.filename} cannot be used: {problem.strerror}; try another --data-dir"
        ) from problem


def _take(lock: int, path: Path) -> None:
    """Lock the folder; the lock file holds the process id."""
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
        if entry.name in {_LOCK, _MARK, _URL_FILE, _PING_URL_FILE}:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _prepare(path: Path) -> DataDir:
    folder = DataDir(path.resolve())
    for part in (folder.service, folder.agent, folder.logs, folder.traces):
        part.mkdir(mode=_PRIVATE, exist_ok=True)
        part.chmod(_PRIVATE)
    for part in (folder.path, folder.agent):
        part.chmod(_folder_mode())
    if not (path / _MARK).exists():
        folder.keep_demo_ports(DemoPorts())
    return folder


def _folder_mode() -> int:
    """Return the mode that lets users of runs reach the packages of suites below the folder."""
    return _TRAVERSABLE if can_have_own_users() else _PRIVATE


def _write_secret(file: Path, secret: str) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as kept:
        kept.write(secret)
