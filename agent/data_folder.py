"""The agent's data folder, and the locks that keep other agents out."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_MOST_TRIES: Final = 20
"""How often a folder is made again because it was removed before it could be locked."""
_LOOK_EACH_S: Final = 0.05


class NoLocksError(OSError):
    """The disk keeps no locks, so whether a folder is in use is unknown."""


def lock_folder(folder: Path) -> int:
    """A descriptor of the folder, which is made, and ours alone until it is closed.

    On a disk without locks it is ours as far as others keep to folders of their own.

    Raises:
        OSError: it cannot be made, or another process has it.
    """
    for _ in range(_MOST_TRIES):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            return _locked(folder, os.O_DIRECTORY, needs_locks=False)
        except FileNotFoundError:
            continue
    raise FileNotFoundError(f"{folder} is removed again and again")


def lock_left_folder(folder: Path) -> int:
    """A descriptor of a folder that was another's, ours alone until it is closed.

    Raises:
        BlockingIOError: the other one lives.
        FileNotFoundError: it is gone.
        NotADirectoryError: it is no folder.
        NoLocksError: the disk keeps no locks.
        OSError: it cannot be opened.
    """
    return _locked(folder, os.O_DIRECTORY | os.O_NOFOLLOW, needs_locks=True)


@contextmanager
def alone(file: Path, *, limit_s: float) -> Iterator[bool]:
    """Whether no other process is in such a block, after waiting for those that are.

    On a disk without locks it is taken for true.
    """
    descriptor = _once_free(file, ends_at=time.monotonic() + limit_s)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _once_free(file: Path, *, ends_at: float) -> int | None:
    """A descriptor of the locked file. None: it was not free in time."""
    while True:
        try:
            return _locked(file, os.O_CREAT, needs_locks=False)
        except (BlockingIOError, FileNotFoundError):
            if time.monotonic() >= ends_at:
                return None
            time.sleep(_LOOK_EACH_S)


def _locked(path: Path, how: int, *, needs_locks: bool) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | how, 0o600)
    try:
        _lock(descriptor, needs_locks=needs_locks)
        # Whoever had it may have removed it: a lock on what has no name keeps nobody out.
        if not os.path.samestat(os.fstat(descriptor), path.stat()):
            raise FileNotFoundError(f"{path} was replaced")
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _lock(descriptor: int, *, needs_locks: bool) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as problem:
        raise BlockingIOError(problem.errno, "another agent uses it") from problem
    except OSError as problem:
        if needs_locks:
            raise NoLocksError(problem.errno, problem.strerror) from problem


def unusable(problem: OSError) -> str:
    """The folder, why, and the setting that names it."""
    if problem.strerror is None:
        return str(problem)  # a sentence of our own
    where = f"{problem.filename} cannot be used" if problem.filename else "it cannot be used"
    return f"{where}: {problem.strerror}; set AGENT_DATA_DIR to a folder that the agent can write"
