"""A program to run in the sandbox: its command, limits and remaining time."""

import time
from pathlib import Path
from typing import Final, Self

import msgspec

from contract.result import LogLine

_HEAVY_MB: Final = 1000
"""A program with a lower memory limit starts without a memory reservation."""
_EXPECTED_SHARE: Final = 4
_UNUSED_MB: Final = 2048
"""Address space that a process may reserve and not use: Node reserves up to 1.4 GB."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one program, for all its processes together unless a field says otherwise."""

    memory_mb: int
    """Memory, checked several times a second; above it all processes are killed."""
    file_mb: int = 300
    """The largest file that one process may write."""
    folder_mb: int = 2000
    """The size of all files in the program's folder."""
    files: int = 200_000
    """The number of files in the program's folder, folders included."""
    processes: int = 512
    """The number of processes; threads count as well."""
    open_files: int = 4096
    """The number of files that each process may have open."""
    log_bytes: int = 1_000_000
    """The size of stdout and stderr together; the rest is dropped with a notice."""

    @property
    def expected_mb(self) -> int:
        """The memory reserved at a program's start: a typical browser run uses 1/4 of its limit."""
        return self.memory_mb // _EXPECTED_SHARE if self.memory_mb >= _HEAVY_MB else 0

    @property
    def data_mb(self) -> int:
        """RLIMIT_DATA of one process: far above what it may use, as a last line of defence."""
        return 2 * self.memory_mb + _UNUSED_MB


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A command to run in the sandbox."""

    argv: tuple[str, ...]
    """The absolute path of the program, then its arguments."""
    folder: Path
    """The working directory, inside the run's workspace."""
    env: dict[str, str]
    """The complete environment; nothing is inherited."""
    limits: Limits
    facts_fd: bool = True
    """Whether descriptor 3 of the program is a pipe to the agent, with one JSON value per line."""


class ProgramExit(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended."""

    exit_code: int | None
    """The exit code of the first process. None: a signal ended it."""
    signal: int | None
    """The signal that ended the first process. None: it exited by itself."""
    timed_out: bool
    """Whether it was stopped at its time limit."""
    out_of_memory: bool
    """Whether it used more memory than its limit, or gave up for lack of memory."""
    was_killed: bool = False
    """Whether somebody else than the sandbox sent SIGKILL to the first process."""
    had_oom_kills: bool = False
    """Whether the kernel's OOM killer ended processes meanwhile, the first process or others."""
    stopped_because: str | None = None
    """One sentence when the sandbox stopped it for a limit other than time. None: it did not."""
    peak_mb: float
    """The most memory that its processes were seen to use together."""
    took_s: float
    log: tuple[LogLine, ...]
    """The lines of stdout (INFO) and stderr (ERROR), with their times."""
    facts_cut: bool
    """Whether facts were dropped because there were too many or too long ones."""


_RESERVED_SHARE: Final = 0.25
"""The share of a time limit that is reserved for stopping the script and reading its files."""
_LEAST_RESERVED_S: Final = 4.0
"""Killing processes and reading their files takes seconds on a busy machine."""
_MOST_RESERVED_SHARE: Final = 0.4
"""The largest reserved share, for very short limits: most of the time belongs to the script."""
_GRACE_SHARE: Final = 0.5
"""The share of the reserved time between SIGINT and SIGKILL; the rest is for reading the files."""
_DESCENDANTS_WAIT_S: Final = 1.0
_DESCENDANTS_WAIT_SHARE: Final = 0.25


class Deadline(msgspec.Struct, frozen=True):
    """The time when work has to be done; threads check it, because nobody can interrupt them."""

    at_s: float
    """Seconds of the monotonic clock."""

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Make a deadline this many seconds from now."""
        return cls(time.monotonic() + seconds)

    @property
    def has_passed(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self.at_s

    @property
    def remaining_s(self) -> float:
        """The seconds until the deadline; 0 once it has passed."""
        return max(0.0, self.at_s - time.monotonic())

    def halve(self) -> "Deadline":
        """Make a deadline at half of the remaining time; the other half is for the next step."""
        return Deadline((time.monotonic() + self.at_s) / 2)


class RunTime(msgspec.Struct, frozen=True, kw_only=True):
    """How the time limit of one run is divided."""

    limit_s: float
    """The limit as the check sets it, which messages name."""
    stop_after_s: float
    """When the script gets SIGINT, early enough for it to finish its trace and video."""
    grace_s: float
    """The seconds between SIGINT and SIGKILL."""

    def minus(self, used_s: float) -> Self:
        """Subtract time that has already been used."""
        left_s = max(0.0, self.stop_after_s - used_s)
        return msgspec.structs.replace(self, stop_after_s=left_s)


def descendants_wait_s(grace_s: float) -> float:
    """How long the descendants of a killed process are waited for.

    The time is taken from that for reading the run's files, so it is short where that is short.
    """
    return min(_DESCENDANTS_WAIT_S, grace_s * _DESCENDANTS_WAIT_SHARE)


def split_time(limit_s: float, *, within_s: float, most_reserved_s: float) -> RunTime:
    """Divide the time of a run that has to finish, its files included, in `within_s` seconds."""
    least_s = min(_LEAST_RESERVED_S, within_s * _MOST_RESERVED_SHARE)
    reserved_s = min(most_reserved_s, max(least_s, within_s * _RESERVED_SHARE))
    return RunTime(
        limit_s=limit_s,
        stop_after_s=within_s - reserved_s,
        grace_s=reserved_s * _GRACE_SHARE,
    )
