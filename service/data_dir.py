"""The service's data folder, and files that only its owner may read."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from service.errors import SettingsError
from service.settings import Settings

log = structlog.get_logger()


@contextmanager
def held_folders(settings: Settings) -> Iterator[None]:
    """Make the folders, and keep a second service off the database until the block ends.

    The lock is on a file beside the database, and no lock of the database itself: other programs
    may open that while the service runs. The kernel lets go of it however the process ends.

    Raises:
        SettingsError: a folder cannot be used, or another service uses the database.
    """
    _make(settings.data_dir)
    descriptor = _locked(settings)
    try:
        yield
    finally:
        os.close(descriptor)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError as problem:
        raise _unusable(f"SERVICE_DATA_DIR is {folder}", problem.strerror) from problem
    if not writable:
        raise _unusable(f"SERVICE_DATA_DIR is {folder}", "this user cannot write there")


def _locked(settings: Settings) -> int:
    """The lock: a descriptor that holds it until it is closed."""
    file = settings.database_file.resolve()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        lock = file.with_name(f"{file.name}.lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as problem:
        raise _unusable(_named(settings), problem.strerror) from problem
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as problem:
        os.close(descriptor)
        raise _taken(settings, file.parent) from problem
    except OSError as problem:
        log.warning("service.unlocked", folder=str(file.parent), reason=problem.strerror)
    return descriptor


def _named(settings: Settings) -> str:
    """The setting that led to the database, and what it says."""
    if _is_elsewhere(settings):
        return f"DATABASE_URL names {settings.database_file}"
    return f"SERVICE_DATA_DIR is {settings.data_dir}"


def _is_elsewhere(settings: Settings) -> bool:
    return settings.database_file.parent != settings.data_dir


def _unusable(named: str, reason: str | None) -> SettingsError:
    because = f"which cannot be used ({reason})"
    return SettingsError((f"{named}, {because}; use a folder that this user may write to",))


def _taken(settings: Settings, folder: Path) -> SettingsError:
    setting = "DATABASE_URL" if _is_elsewhere(settings) else "SERVICE_DATA_DIR"
    mend = f"stop it, or give {setting} another folder"
    return SettingsError((f"another service uses the database in {folder}; {mend}",))


@contextmanager
def private_files() -> Iterator[None]:
    """Let nobody else read the files and folders that are made in the block."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def make_own_file(file: Path, content: bytes) -> None:
    """Whole or not at all, and on disk before anything rests on what is in it.

    Raises:
        OSError: it cannot be made here.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as writing:
        writing.write(content)
        writing.flush()
        os.fsync(writing.fileno())
    unfinished.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
