"""What came of the checks of files that ran once."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a check ended."""

    PASSED = "PASSED"
    DEGRADED = "DEGRADED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    ERROR = "ERROR"
    """It did not run, for reasons other than its target."""
    SKIPPED = "SKIPPED"
    """It runs on no demand."""

    @property
    def is_bad(self) -> bool:
        """Whether the command fails."""
        return self not in (Verdict.PASSED, Verdict.DEGRADED, Verdict.SKIPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A check that ran, without secrets."""

    name: str
    source: str
    """Its file."""
    suite: str
    """Its group, or its file's folder."""
    verdict: Verdict
    reason: str | None = None
    """One sentence. None: it passed."""
    took_s: float = 0.0
    log: str = ""
    details: str = ""
    """The whole report, for a failed check. Empty: there is none."""
    link: str | None = None
    """Where its result is shown. None: here only."""
