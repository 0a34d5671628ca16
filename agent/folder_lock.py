"""Keeps agents that share a disk out of each other's folders."""

import fcntl
import os
from pathlib import Path


def lock_folder(folder: Path) -> int:
    """A descriptor of the folder, which is made, and ours alone until it is closed.

    Raises:
        OSError: it cannot be made, or another process has it.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as problem:
        os.close(descriptor)
        raise BlockingIOError(problem.errno, "another agent uses it") from problem
    except OSError:
        return descriptor  # a file system without locks
    return descriptor
