"""Why a child ended, as a value and as a sentence."""

import os
import re
import signal
from typing import Final

import msgspec

from contract.result import LogLine
from sandbox.limits import Excess, too_much_memory
from sandbox.memory import TooLittleMemoryError
from sandbox.program import Ended, Limits

_LAUNCHERS: Final = frozenset({"prlimit", "setpriv", "env"})
_LAUNCHER_SAYS: Final = re.compile(r"(?:\S*/)?(?:prlimit|setpriv|env): ")
_OUT_OF_MEMORY: Final = re.compile(r"^(?:FATAL ERROR: |#).*(?:out of memory|Allocation failed)")
"""What V8 says before it gives up."""
_NEAR: Final = 0.75
"""The part of its limit from which on a script itself wanted too much: it may have used more than
was seen between two looks."""


class LaunchError(OSError):
    """The program was never started, and that is our fault."""


class ExitState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known when nothing of a program is left."""

    status: int
    """As the system tells it."""
    last_name: str
    """What its first process was called when it ended: it is one of ours until the program's begin.
    A shell that says `env: no such file` is none."""
    was_asked: bool
    """We ended it, by a signal."""
    timed_out: bool
    excess: Excess | None
    """The limit for which we ended it. None: it was not for one."""
    was_refused_memory: bool
    """A process of it had reserved so much that the system gave it no more."""
    system_took_some: bool
    """The system ran out of memory meanwhile, and ended processes."""
    peak_mb: float
    took_s: float
    log: tuple[LogLine, ...]
    any_facts: bool
    facts_cut: bool


def describe_exit(end: ExitState, limits: Limits) -> Ended:
    """Put the end of a program into words.

    Raises:
        LaunchError: it never began.
        TooLittleMemoryError: it was ended for want of memory, though it used little.
    """
    code = os.waitstatus_to_exitcode(end.status)
    if code > 0 and not end.any_facts and end.last_name in _LAUNCHERS:
        _require_launch(end.log)
    if _was_taken(end, code):
        require_enough_memory(end.peak_mb, limits.memory_mb)
    out_of_memory = _is_out_of_memory(end, code)
    return Ended(
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        timed_out=end.timed_out,
        out_of_memory=out_of_memory,
        system_took_some=end.system_took_some,
        stopped_because=_because(end, code, limits, out_of_memory=out_of_memory),
        peak_mb=end.peak_mb,
        took_s=end.took_s,
        log=end.log,
        facts_cut=end.facts_cut,
    )


def require_enough_memory(peak_mb: float, limit_mb: int) -> None:
    """Of a script from which the system took processes for want of memory: whether it used much.

    Raises:
        TooLittleMemoryError: it did not; the machine, or our container, is too small.
    """
    if peak_mb < _NEAR * limit_mb:
        raise TooLittleMemoryError(
            f"The system ended a script for want of memory when it used {peak_mb:.0f} MB, and its "
            f"limit is {limit_mb} MB: this location has too little memory"
        )


def _was_taken(end: ExitState, code: int) -> bool:
    is_killed = code == -signal.SIGKILL and not end.was_asked
    return is_killed and end.excess is None and end.system_took_some


def _require_launch(log: tuple[LogLine, ...]) -> None:
    if len(log) == 1 and log[0].level == "ERROR" and _LAUNCHER_SAYS.match(log[0].message):
        raise LaunchError(f"The program could not be started: {log[0].message}")


def _is_out_of_memory(end: ExitState, code: int) -> bool:
    if end.excess is not None:
        return end.excess.is_memory
    if code == 0:
        return False
    said = any(line.level == "ERROR" and _OUT_OF_MEMORY.match(line.message) for line in end.log)
    return _was_taken(end, code) or said or (end.was_refused_memory and not end.was_asked)


def _because(end: ExitState, code: int, limits: Limits, *, out_of_memory: bool) -> str | None:
    if end.excess is not None:
        return end.excess.because
    if out_of_memory:
        said = too_much_memory(limits.memory_mb, end.peak_mb)
        return f"{said}; this location had no more" if end.system_took_some else said
    if code == -signal.SIGXFSZ:
        return f"It wrote a file larger than {limits.file_mb} MB, which is the limit"
    return None
