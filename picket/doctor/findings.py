"""The findings of `picket doctor`."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARN = "warn"
    """It works, with limits."""
    FAIL = "fail"
    """The agent or a check type cannot work."""
    SKIP = "skip"
    """It was not looked at, because a setting that it depends on is wrong."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of the host."""

    health: Health
    what: str
    """The subject, in a word or two."""
    seen: str
    """What was found."""
    fix: str = ""
    """What to do about it; empty when there is nothing to do."""

    def line(self) -> str:
        """Format the finding as one line of output."""
        fix = f"  fix: {self.fix}" if self.fix else ""
        return f"{self.health:<5} {self.what:<23} {self.seen}{fix}"


def ok(what: str, seen: str) -> Finding:
    """Make a finding without a problem."""
    return Finding(Health.OK, what, seen)


def warn(what: str, seen: str, *, fix: str) -> Finding:
    """Make a finding that limits the agent."""
    return Finding(Health.WARN, what, seen, fix)


def fail(what: str, seen: str, *, fix: str) -> Finding:
    """Make a finding that keeps the agent or a check type from working."""
    return Finding(Health.FAIL, what, seen, fix)


def skip(what: str, wrong: Iterable[str]) -> Finding:
    """Make a finding on what cannot be looked at before these settings are right."""
    names = sorted(wrong)
    are = "is" if len(names) == 1 else "are"
    return Finding(Health.SKIP, what, f"not checked until {' and '.join(names)} {are} right")
