"""A program to run in the sandbox: its command, limits and remaining time."""

import time
from pathlib import Path
from typing import Final, Self

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


_RESERVED_SHARE: Final = 0.25
"""Of a short limit."""
_LEAST_RESERVED_S: Final = 4.0
"""Ending by force and reading what was left take seconds on a busy machine."""
_MOST_RESERVED_SHARE: Final = 0.4
"""Of a limit that is shorter still: the script is what it is for."""
_GRACE_SHARE: Final = 0.5
"""Of what is reserved; the rest is for ending by force, and for reading what was left."""
_LAST_WORDS_S: Final = 1.0
_LAST_WORDS_SHARE: Final = 0.25


class Until(msgspec.Struct, frozen=True):
    """When work has to be over, for threads, which nobody can interrupt: they ask."""

    at_s: float
    """By the monotonic clock."""

    @classmethod
    def after(cls, seconds: float) -> Self:
        """So long from now on."""
        return cls(time.monotonic() + seconds)

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self.at_s

    @property
    def left_s(self) -> float:
        """What is left of it."""
        return max(0.0, self.at_s - time.monotonic())

    def half(self) -> "Until":
        """Half of what is left of it, so that as much is left for what comes then."""
        return Until((time.monotonic() + self.at_s) / 2)


class RunTime(msgspec.Struct, frozen=True, kw_only=True):
    """The time of one run."""

    limit_s: float
    """As it was set up: sentences tell it."""
    stop_after_s: float
    """Then the script is asked to end, so that its trace and video come to an end as well."""
    grace_s: float
    """So long after that it is ended by force."""

    def later(self, used_s: float) -> Self:
        """The same, when some of it is over."""
        left_s = max(0.0, self.stop_after_s - used_s)
        return msgspec.structs.replace(self, stop_after_s=left_s)


def last_words_s(grace_s: float) -> float:
    """How long, after a process was ended by force, those that it had started are waited for.

    It is taken from the time in which what was left is read, so it is short where that is.
    """
    return min(_LAST_WORDS_S, grace_s * _LAST_WORDS_SHARE)


def split(limit_s: float, *, within_s: float, most_reserved_s: float) -> RunTime:
    """The time of a run that has to be over, with all that is kept of it, within so long."""
    least_s = min(_LEAST_RESERVED_S, within_s * _MOST_RESERVED_SHARE)
    reserved_s = min(most_reserved_s, max(least_s, within_s * _RESERVED_SHARE))
    return RunTime(
        limit_s=limit_s,
        stop_after_s=within_s - reserved_s,
        grace_s=reserved_s * _GRACE_SHARE,
    )
