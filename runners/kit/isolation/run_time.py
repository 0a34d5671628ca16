"""How a run's time is divided between its script and what has to be kept of it."""

import time
from typing import Final, Self

import msgspec

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


def divided(limit_s: float, *, within_s: float, most_reserved_s: float) -> RunTime:
    """The time of a run that has to be over, with all that is kept of it, within so long."""
    least_s = min(_LEAST_RESERVED_S, within_s * _MOST_RESERVED_SHARE)
    reserved_s = min(most_reserved_s, max(least_s, within_s * _RESERVED_SHARE))
    return RunTime(
        limit_s=limit_s,
        stop_after_s=within_s - reserved_s,
        grace_s=reserved_s * _GRACE_SHARE,
    )
