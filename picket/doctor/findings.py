"""What `picket doctor` found: one line each, with the fix."""

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    """It works, but not as well as it could."""
    FAIL = "fail"
    """The agent, or a check type, cannot work like this."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    health: Health
    what: str
    """The thing, in a word or two."""
    seen: str
    """What was found."""
    fix: str = ""
    """What to do about it; empty when there is nothing to do."""

    def line(self) -> str:
        """As it is printed."""
        fix = f"  fix: {self.fix}" if self.fix else ""
        return f"{self.health:<5} {self.what:<23} {self.seen}{fix}"


def ok(what: str, seen: str) -> Finding:
    """All is well."""
    return Finding(Health.OK, what, seen)


def warn(what: str, seen: str, *, fix: str) -> Finding:
    """It could be better."""
    return Finding(Health.WARN, what, seen, fix)


def fail(what: str, seen: str, *, fix: str) -> Finding:
    """It cannot work like this."""
    return Finding(Health.FAIL, what, seen, fix)
