"""File descriptors: lending one to libcurl, and noticing that there are none left."""

import os
import socket
from typing import Final

_OF_A_LOOKUP: Final = 4
"""How many a name lookup needs."""


class Lent:
    """A socket that pycurl copies the descriptor of and then drops, which closes this one."""

    def __init__(self, opened: socket.socket) -> None:
        self._opened = opened

    def __del__(self) -> None:
        self._opened.close()

    def fileno(self) -> int:
        """What pycurl copies."""
        return self._opened.fileno()


def shortage() -> int:
    """The errno of a process that is out of descriptors; 0 when there are enough.

    libcurl tells neither a lookup nor a connect that failed for want of descriptors from one
    that failed at the target.
    """
    held: list[int] = []
    try:
        held.extend(os.dup(2) for _ in range(_OF_A_LOOKUP))
    except OSError as problem:
        return problem.errno or 0
    finally:
        for descriptor in held:
            os.close(descriptor)
    return 0
