"""Describes how a program ended, as a value and as a sentence."""

import os
import re
import signal
from typing import Final

import msgspec

from contract.result import LogLine
from sandbox.limits import ExceededLimit, describe_memory_excess
from sandbox.memory import TooLittleMemoryError
from sandbox.program import Limits, ProgramExit

_LAUNCHERS: Final = frozenset({"prlimit", "setpriv", "env"})
_LAUNCHER_ERROR: Final = re.compile(r"(?:\S*/)?(?:prlimit|setpriv|env): ")
_OUT_OF_MEMORY: Final = re.compile(r"^(?:FATAL ERROR: |#).*(?:out of memory|Allocation failed)")
"""V8's message before it aborts."""
_NEAR_LIMIT_SHARE: Final = 0.75
"""The share of its limit above which a script itself is blamed for an OOM kill: it may have used
more between two checks than either of them measured."""


class LaunchError(OSError):
    """The program was never started; that is our fault, not the check's."""


class ExitState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a program once all its processes are gone."""

    status: int
    """The status of the first process, as waitpid returns it."""
    last_name: str
    """The name of its first process when it ended: that of a launcher until the program began.
    A shell that prints `env: no such file` has another name."""
    was_stopped_by_us: bool
    """Whether the agent ended it by a signal."""
    timed_out: bool
    excess: ExceededLimit | None
    """The limit for which the agent ended it. None: it exceeded none."""
    was_refused_memory: bool
    """Whether one of its processes came so near RLIMIT_DATA that the system refused it memory."""
    had_oom_kills: bool
    """Whether the kernel's OOM killer ended processes meanwhile."""
    peak_mb: float
    took_s: float
    log: tuple[LogLine, ...]
    any_facts: bool
    facts_cut: bool


def describe_exit(end: ExitState, limits: Limits) -> ProgramExit:
    """Describe how a program ended.

    Raises:
        LaunchError: the program never began.
        TooLittleMemoryError: it was ended for want of memory, though it used little.
    """
    code = os.waitstatus_to_exitcode(end.status)
    if code > 0 and not end.any_facts and end.last_name in _LAUNCHERS:
        _require_launch(end.log)
    if _was_oom_killed(end, code):
        require_enough_memory(end.peak_mb, limits.memory_mb)
    out_of_memory = _is_out_of_memory(end, code)
    return ProgramExit(
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        timed_out=end.timed_out,
        out_of_memory=out_of_memory,
        was_killed=_was_killed(end, code),
        had_oom_kills=end.had_oom_kills,
        stopped_because=_describe_limit(end, code, limits, out_of_memory=out_of_memory),
        peak_mb=end.peak_mb,
        took_s=end.took_s,
        log=end.log,
        facts_cut=end.facts_cut,
    )


def require_enough_memory(peak_mb: float, limit_mb: int) -> None:
    """Require that a script which lost processes to the OOM killer had used much of its limit.

    Raises:
        TooLittleMemoryError: it did not; the machine, or our container, is too small.
    """
    if peak_mb < _NEAR_LIMIT_SHARE * limit_mb:
        raise TooLittleMemoryError(
            f"The system ended a script for want of memory when it used {peak_mb:.0f} MB, and its "
            f"limit is {limit_mb} MB: this location has too little memory"
        )


def _was_killed(end: ExitState, code: int) -> bool:
    return code == -signal.SIGKILL and not end.was_stopped_by_us and end.excess is None


def _was_oom_killed(end: ExitState, code: int) -> bool:
    return _was_killed(end, code) and end.had_oom_kills


def _require_launch(log: tuple[LogLine, ...]) -> None:
    if len(log) == 1 and log[0].level == "ERROR" and _LAUNCHER_ERROR.match(log[0].message):
        raise LaunchError(f"The program could not be started: {log[0].message}")


def _is_out_of_memory(end: ExitState, code: int) -> bool:
    if end.excess is not None:
        return end.excess.is_memory
    if code == 0:
        return False
    said = any(line.level == "ERROR" and _OUT_OF_MEMORY.match(line.message) for line in end.log)
    return (
        _was_oom_killed(end, code) or said or (end.was_refused_memory and not end.was_stopped_by_us)
    )


def _describe_limit(
    end: ExitState, code: int, limits: Limits, *, out_of_memory: bool
) -> str | None:
    if end.excess is not None:
        return end.excess.because
    if out_of_memory:
        said = describe_memory_excess(limits.memory_mb, end.peak_mb)
        return f"{said}; this location had no more" if end.had_oom_kills else said
    if code == -signal.SIGXFSZ:
        return f"It wrote a file larger than {limits.file_mb} MB, which is the limit"
    return None
