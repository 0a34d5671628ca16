"""System calls for which Python has no function."""

import ctypes
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_PR_SET_DUMPABLE: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36
_M_MMAP_THRESHOLD: Final = -3
_LARGE_BLOCK_BYTES: Final = 1 << 20
LIBC: Final = ctypes.CDLL(None, use_errno=True)


def hide_memory() -> None:
    """Keep others of the same user from reading this process's memory and environment.

    Raises:
        OSError: the system refuses.
    """
    _switch(_PR_SET_DUMPABLE, 0)


@contextmanager
def file_access_of(uid: int | None) -> Iterator[None]:
    """Access files as this user and group does, in this thread alone. None: as we do.

    Root in a container may not look at the open files of others' processes; their user may.
    """
    if uid is None:
        yield
        return
    LIBC.setfsgid(uid)
    LIBC.setfsuid(uid)
    try:
        yield
    finally:
        LIBC.setfsuid(os.geteuid())
        LIBC.setfsgid(os.getegid())


def give_back_memory() -> None:
    """Return freed memory to the kernel, where the C library does not do so by itself."""
    gc.collect()
    with suppress(AttributeError):
        LIBC.malloc_trim(0)


def map_large_blocks() -> None:
    """Let each large block of memory return to the kernel as soon as it is freed.

    The GNU C library does so only until the first one was freed; from then on it keeps blocks of
    that size, in which others leave gaps.
    """
    with suppress(AttributeError):
        LIBC.mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)


def adopt_orphans() -> None:
    """Become the subreaper of all descendants, so that none whose parent ends gets away.

    Raises:
        OSError: the system refuses.
    """
    _switch(_PR_SET_CHILD_SUBREAPER, 1)


def _switch(option: int, value: int) -> None:
    if LIBC.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
