"""What a setup or teardown script reported, and whether it passed.

The script shares its process with the harness and can forge facts. A line that is no valid fact
fails the script that wrote it, and affects nothing else.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from contract.result import Failure, FailureKind, LogLine
from runners.scripting.node.node_pool import MEMORY_MB
from runners.scripting.node.protocol import (
    LIMIT_BYTES,
    Begun,
    Broke,
    Done,
    Fact,
    Logged,
    ScriptName,
    Secret,
    decode_fact,
)
from runners.scripting.node.runtimes import suggest_module
from sandbox.program import ProgramExit

_MAX_LINES: Final = 1_001
"""The most lines of a log, including the notice that there were more."""
_MAX_SECRETS: Final = 20
_MAX_SECRET_CHARS: Final = 16_384
"""The total length of all secrets, as each is searched for in all its encoded forms."""


class ScriptFacts:
    """The facts of one script, as they come in."""

    def __init__(self, *, began_ms: float, add_secret: Callable[[str], None]) -> None:
        """`began_ms`: when the script got its job, since the run began."""
        self.has_begun = False
        self.ending: Broke | Done | None = None
        """How the script ended by itself. None: it has not."""
        self.is_garbled = False
        """Whether a line came that is no valid fact."""
        self._began_ms = began_ms
        self._add_secret = add_secret
        self._secrets: set[str] = set()
        self.log: list[LogLine] = []

    def take(self, line: bytes) -> bool:
        """Note a line; return whether the end of the process cannot add anything any more."""
        try:
            fact = decode_fact(line)
        except (msgspec.DecodeError, RecursionError):
            self.is_garbled = True
        else:
            self._note(fact)
        return self.is_garbled or (isinstance(self.ending, Done) and not self.ending.printed)

    def _note(self, fact: Fact) -> None:
        match fact:
            case Begun():
                self.has_begun = True
            case Logged() if len(self.log) < _MAX_LINES:
                at_ms = self._began_ms + fact.after_ms
                self.log.append(LogLine(after_ms=at_ms, level=fact.level, message=fact.message))
            case Secret():
                self._note_secret(fact.value)
            case Broke() | Done() if self.ending is None:
                self.ending = fact
            case _:
                self.is_garbled = True

    def _note_secret(self, value: str) -> None:
        self._secrets.add(value)
        chars = sum(map(len, self._secrets))
        if len(self._secrets) > _MAX_SECRETS or chars > _MAX_SECRET_CHARS:
            self.is_garbled = True
        else:
            self._add_secret(value)


_MAX_MESSAGE_CHARS: Final = 500
_REFUSED_MEMORY: Final = ("Failed to allocate memory", "Array buffer allocation failed")
"""Node's messages when the system refuses it memory."""


def judge_ending(
    name: ScriptName, facts: ScriptFacts, ended: ProgramExit | None, *, limit: str
) -> Done | Failure:
    """Judge how a script ended: its result, or why it failed.

    `ended`: None if its facts said enough. `limit`: its time limit, as in `its limit of 10 s`.
    """
    ending = facts.ending
    if isinstance(ending, Done) and not facts.is_garbled:
        return ending
    if isinstance(ending, Done) or facts.is_garbled or ended is None or ended.facts_cut:
        return _fail(name, "wrote into the channel on which its result comes")
    if _lacked_memory(ending, ended):
        return _fail_out_of_memory(name, ended)
    if ending is not None:
        return _fail_broken(name, ending)
    return _fail_timed_out(name, limit) if ended.timed_out else _fail(name, _describe_end(ended))


def fail_too_large(name: ScriptName, what: str, size_bytes: int) -> Failure:
    """Fail a script because more was to be passed to it than the limit."""
    return Failure(
        kind=FailureKind.SCRIPT,
        message=(
            f"{what} has {size_bytes} bytes, and at most {LIMIT_BYTES} may pass to "
            f"{name.words}, so it did not run."
        ),
        detail={"script": name.file, "bytes": size_bytes},
    )


def fail_no_time(name: ScriptName) -> Failure:
    """Fail a script because the run's time was up before it could start."""
    return Failure(
        kind=FailureKind.TIMEOUT,
        message=f"No time was left for {name.words}.",
        detail={"script": name.file},
    )


def _fail(name: ScriptName, why: str) -> Failure:
    return Failure(
        kind=FailureKind.SCRIPT, message=f"{_capitalise(name)} {why}.", detail={"script": name.file}
    )


def _fail_broken(name: ScriptName, ending: Broke) -> Failure:
    said = " ".join(ending.message.split())
    if len(said) > _MAX_MESSAGE_CHARS:
        said = f"{said[: _MAX_MESSAGE_CHARS - 1]}…"
    place = f" ({ending.place})" if ending.place is not None else ""
    told = filter(None, (f"{_capitalise(name)} failed: {said}{place}", suggest_module(said)))
    return Failure(
        kind=FailureKind.SCRIPT,
        message=". ".join(told),
        detail={"script": name.file, "place": ending.place},
    )


def _fail_timed_out(name: ScriptName, limit: str) -> Failure:
    return Failure(
        kind=FailureKind.TIMEOUT,
        message=f"{_capitalise(name)} did not end within {limit}.",
        detail={"script": name.file},
    )


def _describe_end(ended: ProgramExit) -> str:
    if ended.stopped_because is not None:
        return f"was stopped: {ended.stopped_because.rstrip('.')}"
    if ended.signal is not None:
        return f"ended with signal {ended.signal} before it was done"
    return f"ended its process with exit code {ended.exit_code} before it was done"


def _lacked_memory(ending: Broke | None, ended: ProgramExit) -> bool:
    """Whether it lacked memory, which the system may refuse before a check measures the use."""
    if ended.out_of_memory:
        return True
    return ending is not None and any(sign in ending.message for sign in _REFUSED_MEMORY)


def _fail_out_of_memory(name: ScriptName, ended: ProgramExit) -> Failure:
    return Failure(
        kind=FailureKind.OUT_OF_MEMORY,
        message=(
            f"{_capitalise(name)} ran out of memory: it may use {MEMORY_MB} MB, "
            f"and {ended.peak_mb:.0f} MB were seen."
        ),
        detail={"script": name.file, "limitMb": MEMORY_MB, "peakMb": round(ended.peak_mb, 1)},
    )


def _capitalise(name: ScriptName) -> str:
    return name.words[0].upper() + name.words[1:]
