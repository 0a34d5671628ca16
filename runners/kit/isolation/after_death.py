"""A small process that outlives the agent by a moment, and clears away its scripts.

Where the agent is the first process of its container, the system itself ends all others with it.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Final

from runners.kit.isolation.child_pipes import open_pipe

_SHELL: Final = "/bin/sh"
_WAIT_THEN_SWEEP: Final = 'read _; exec "$@"'
"""Reading ends when nobody is left who could write."""
_ROOT: Final = str(Path(__file__).parents[3])


class AfterDeath:
    """Waits for the agent's end in a shell, which costs less than a megabyte, and sweeps then."""

    def __init__(self, folders: list[Path]) -> None:
        """`folders`: those in which runs have theirs.

        Raises:
            OSError: it cannot be started.
        """
        waits, self._ours = open_pipe()
        try:
            self._pid = _start(waits, [str(folder) for folder in folders])
        finally:
            os.close(waits)

    def close(self) -> None:
        """There is nothing to sweep."""
        os.kill(self._pid, signal.SIGKILL)
        os.close(self._ours)
        os.waitpid(self._pid, 0)


def _start(waits: int, folders: list[str]) -> int:
    sweep = [sys.executable, "-m", "runners.kit.isolation.sweeping", *folders]
    path = os.pathsep.join((_ROOT, *filter(None, sys.path)))
    return os.posix_spawn(
        _SHELL,
        [_SHELL, "-c", _WAIT_THEN_SWEEP, "after-death", *sweep],
        {"PATH": os.defpath, "PYTHONPATH": path},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, waits, 0),
            *((os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)),
        ],
        setsid=True,
    )
