"""What runs in the sandbox, and how it ended."""

from pathlib import Path
from typing import Final

import msgspec

from contract.result import LogLine

_HEAVY_MB: Final = 1000
"""Programs with a lower limit start without asking for memory."""
_EXPECTED_SHARE: Final = 4
_RESERVED_MB: Final = 2048
"""Node reserves up to 1.4 GB of its own data that it does not use."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much one program may use, all its processes together unless a field says otherwise."""

    memory_mb: int
    """Looked at several times a second; above it the tree is killed."""
    file_mb: int = 300
    """The largest file that a process may write."""
    folder_mb: int = 2000
    """All files that the program leaves in its folder."""
    files: int = 200_000
    """How many there may be of them, folders included."""
    processes: int = 512
    """Threads count as processes do."""
    open_files: int = 4096
    """Of each process."""
    log_bytes: int = 1_000_000
    """Of stdout and stderr together; what comes after is dropped with a notice."""

    @property
    def expected_mb(self) -> int:
        """What a program is to find free at its start: a usual browser's run uses a quarter."""
        return self.memory_mb // _EXPECTED_SHARE if self.memory_mb >= _HEAVY_MB else 0

    @property
    def data_mb(self) -> int:
        """What one process may reserve, used or not: far from what it may use, as a last line."""
        return 2 * self.memory_mb + _RESERVED_MB


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A command to run in the sandbox."""

    argv: tuple[str, ...]
    """The program by its absolute path, and its arguments."""
    folder: Path
    """The working directory, inside the run's workspace."""
    env: dict[str, str]
    """The whole environment: nothing is inherited."""
    limits: Limits
    facts_fd: bool = True
    """Descriptor 3 of the program is a pipe to us: one JSON value per line."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended."""

    exit_code: int | None
    """None: a signal ended it."""
    signal: int | None
    """None: it ended by itself."""
    timed_out: bool
    out_of_memory: bool
    system_took_some: bool = False
    """The system ran out of memory meanwhile, and ended processes, if not the first one."""
    stopped_because: str | None = None
    """One sentence when the sandbox stopped it for a limit other than time. None: it did not."""
    peak_mb: float
    """Most memory that the tree was seen to use."""
    took_s: float
    log: tuple[LogLine, ...]
    """stdout as INFO, stderr as ERROR, with time."""
    facts_cut: bool
    """There were more or longer facts than allowed; the rest was dropped."""
