"""What runs in the sandbox, and how it ended."""

from pathlib import Path

import msgspec

from contract.result import LogLine


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much one program may use, all its processes together unless a field says otherwise."""

    memory_mb: int
    """Looked at several times a second; above it the tree is killed."""
    file_mb: int = 300
    """The largest file that a process may write."""
    folder_mb: int = 2000
    """All files that the program leaves in its folder."""
    processes: int = 512
    """Threads count as processes do."""
    open_files: int = 4096
    """Of each process."""
    log_bytes: int = 1_000_000
    """Of stdout and stderr together; what comes after is dropped with a notice."""


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
    stopped_because: str | None = None
    """One sentence when the sandbox stopped it for a limit other than time. None: it did not."""
    peak_mb: float
    """Most memory that the tree was seen to use."""
    took_s: float
    log: tuple[LogLine, ...]
    """stdout as INFO, stderr as ERROR, with time."""
    facts_cut: bool
    """There were more or longer facts than allowed; the rest was dropped."""
