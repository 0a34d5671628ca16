"""The pipes of a child process, and what it writes into them."""

import asyncio
import fcntl
import os
from collections.abc import Callable, Iterator
from typing import Final, Literal

from contract.result import LogLine
from redaction.policy import CUT_SIGN

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


_READ_BYTES: Final = 64 * 1024
_LAST_READS: Final = 64
"""After the end of all writers a pipe holds at most 1 MB."""
_ABOVE_STANDARD: Final = 10


def open_pipe() -> tuple[int, int]:
    """The reading and the writing end, both clear of the numbers that a child's ends get."""
    ends = os.pipe2(os.O_CLOEXEC)
    try:
        read, write = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _ABOVE_STANDARD) for end in ends)
    finally:
        for end in ends:
            os.close(end)
    return read, write


class PipeReader:
    """Hands on whatever comes out of a pipe."""

    def __init__(self, descriptor: int, take: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._take = take
        self._is_open = True
        os.set_blocking(descriptor, False)
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    def finish(self) -> None:
        """Hand on what is still there, and close; nobody writes any more."""
        try:
            for _ in range(_LAST_READS):
                if not self._is_open or not self._read():
                    break
        finally:
            self._close()

    def _read(self) -> bool:
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        if data:
            self._take(data)
        else:
            self._close()
        return bool(data)

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)


class PipeWriter:
    """Writes one message into a pipe, and closes it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_open = True
        self._room: asyncio.Future[None] | None = None
        """Waited for while the pipe is full. None: it is not."""
        os.set_blocking(descriptor, False)

    async def write(self, message: bytes) -> None:
        """Write all of it; a reader that is gone gets nothing, which its end tells anyway."""
        left = memoryview(message)
        try:
            while left and self._is_open:
                left = left[await self._some(left) :]
        except BrokenPipeError:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """No more comes."""
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_writer(self._descriptor)
            os.close(self._descriptor)
            self._see_room()

    async def _some(self, data: memoryview) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            loop = asyncio.get_running_loop()
            self._room = loop.create_future()
            loop.add_writer(self._descriptor, self._see_room)
            await self._room
            return 0

    def _see_room(self) -> None:
        if self._is_open:
            asyncio.get_running_loop().remove_writer(self._descriptor)
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
