"""The findings of `picket doctor`."""

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARN = "warn"
    """It works, with limits."""
    FAIL = "fail"
    """The agent or a check type cannot work."""


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
