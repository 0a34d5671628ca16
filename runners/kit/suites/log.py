"""The log of a suite's run: what we did, and what its processes said, in one line of time."""

import time
from collections.abc import Iterable
from typing import Literal

import msgspec

from contract.result import LogLine


class SuiteLog:
    """Lines in the order in which they came."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._lines: list[LogLine] = []

    @property
    def lines(self) -> tuple[LogLine, ...]:
        """All so far."""
        return tuple(self._lines)

    def now_ms(self) -> float:
        """Since the run began."""
        return round((time.monotonic() - self._started) * 1000, 1)

    def note(self, message: str, *, level: Literal["INFO", "WARN"] = "INFO") -> None:
        """Say something of our own."""
        self._lines.append(LogLine(after_ms=self.now_ms(), level=level, message=message))

    def add(self, lines: Iterable[LogLine], *, since_ms: float) -> None:
        """Take over what a process said, which counted from its own start, but for empty lines."""
        self._lines += (
            msgspec.structs.replace(line, after_ms=round(line.after_ms + since_ms, 1))
            for line in lines
            if line.message.strip()
        )
