"""Files of secrets that a first start makes, for the eyes of the service's own user."""

import os
from pathlib import Path


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
