"""What the system offers a process and Python has no function for."""

import ctypes
import gc
import os
from contextlib import suppress
from typing import Final

_PR_SET_DUMPABLE: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36
LIBC: Final = ctypes.CDLL(None, use_errno=True)


def hide_memory() -> None:
    """Keep others of the same user from reading this process's memory and environment.

    Raises:
        OSError: the system refuses.
    """
    _switch(_PR_SET_DUMPABLE, 0)


def give_back_memory() -> None:
    """Hand what was freed to the system; the C library of some systems does so by itself."""
    gc.collect()
    with suppress(AttributeError):
        LIBC.malloc_trim(0)


def adopt_orphans() -> None:
    """Make descendants whose parent ends children of this process, so that none gets away.

    Raises:
        OSError: the system refuses.
    """
    _switch(_PR_SET_CHILD_SUBREAPER, 1)


def _switch(option: int, value: int) -> None:
    if LIBC.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
