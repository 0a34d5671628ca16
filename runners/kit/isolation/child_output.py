"""What a child says: log lines with their time, and facts, both cut to size."""

from collections.abc import Callable, Iterator
from typing import Final, Literal

from contract.result import LogLine
from runners.kit.secrets.cut_texts import CUT_SIGN

Level = Literal["INFO", "ERROR"]

FACT_BYTES: Final = 1_000_000
"""The longest line on the facts' descriptor."""
FACT_LINES: Final = 20_000
"""The most lines on it."""
LINE_BYTES: Final = 64 * 1024
"""What is kept of a line of the log. A next piece of it could begin within a secret, where nobody
would know it any more."""
_HALF: Final = "\N{REPLACEMENT CHARACTER}"
"""What a letter is read as that was cut through."""
_LINE_COST_BYTES: Final = 32
"""What a line counts beside its text: a million empty lines are no small log."""
_CUT: Final = "The log is cut here: it reached its limit of {limit} bytes."


class Log:
    """Collects the lines of stdout and stderr in the order in which they come."""

    def __init__(self, limit_bytes: int, *, now_ms: Callable[[], float]) -> None:
        self._limit_bytes = limit_bytes
        self._left_bytes = limit_bytes
        self._now_ms = now_ms
        """Since the program started."""
        self._open: dict[Level, bytes] = {"INFO": b"", "ERROR": b""}
        self._lines: list[LogLine] = []
        self._skipping: set[Level] = set()
        """Where a line was too long, until its end comes."""

    def take(self, level: Level, data: bytes) -> None:
        """Add what came; the last line stays open until its end comes."""
        if self._left_bytes <= 0:
            return
        *whole, rest = (self._open[level] + data).split(b"\n")
        for line in whole:
            self._end(level, line)
        if len(rest) > LINE_BYTES and level not in self._skipping:
            self._add(level, rest)
            self._skipping.add(level)
        self._open[level] = b"" if level in self._skipping else rest

    def _end(self, level: Level, line: bytes) -> None:
        if level in self._skipping:
            self._skipping.remove(level)
        else:
            self._add(level, line)

    def close(self, *, is_cut: bool = False) -> tuple[LogLine, ...]:
        """All lines, with those that had no end.

        `is_cut`: whether the program was ended from outside, perhaps within such a line.
        """
        for level, rest in self._open.items():
            if rest:
                self._add(level, rest, is_cut=is_cut)
                self._open[level] = b""
        return tuple(self._lines)

    def _add(self, level: Level, line: bytes, *, is_cut: bool = False) -> None:
        if self._left_bytes <= 0:
            return
        most_bytes = min(self._left_bytes, LINE_BYTES)
        kept = line[:most_bytes].removesuffix(b"\r").decode(errors="replace")
        if is_cut or len(line) > most_bytes:
            kept = f"{kept.rstrip(_HALF)}{CUT_SIGN}"
        self._append(level, kept)
        self._left_bytes -= min(len(line), most_bytes) + _LINE_COST_BYTES
        if self._left_bytes <= 0:
            self._append("ERROR", _CUT.format(limit=self._limit_bytes))

    def _append(self, level: Level, message: str) -> None:
        self._lines.append(LogLine(after_ms=self._now_ms(), level=level, message=message))


class Facts:
    """Splits the facts' descriptor into lines and drops what is more than allowed."""

    def __init__(self) -> None:
        self.any = False
        """Something was written, if only half a line."""
        self.cut = False
        self._rest = b""
        self._lines = 0
        self._skipping = False
        """Inside a line that is too long."""

    def take(self, data: bytes) -> Iterator[bytes]:
        """The lines that are whole now; an unfinished last line is dropped at the end."""
        self.any = True
        *whole, rest = (self._rest + data).split(b"\n")
        for line in whole:
            if not self._skipping and self._allowed(line):
                yield line
            self._skipping = False
        self._rest = rest
        if len(rest) > FACT_BYTES or self._skipping:
            self.cut = self._skipping = True
            self._rest = b""

    def _allowed(self, line: bytes) -> bool:
        self._lines += 1
        fits = len(line) <= FACT_BYTES and self._lines <= FACT_LINES
        self.cut = self.cut or not fits
        return fits and bool(line)
