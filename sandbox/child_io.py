"""The pipes of a child process, and the log and facts that it writes into them."""

import asyncio
import fcntl
import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple

from contract.result import LogLine
from redaction.policy import CUT_SIGN

Level = Literal["INFO", "ERROR"]

FACT_BYTES: Final = 1_000_000
"""The longest line on the facts' descriptor."""
FACT_LINES: Final = 20_000
"""The most lines on it."""
LINE_BYTES: Final = 64 * 1024
"""How much of a line of the log is kept. The rest is dropped, as it could begin in the middle of a
secret, which redaction would not recognise."""
_HALF: Final = "\N{REPLACEMENT CHARACTER}"
"""The character that stands for a UTF-8 sequence that was cut."""
_LINE_COST_BYTES: Final = 32
"""The bytes that a line counts in addition to its text: a million empty lines are a large log."""
_LEFT_OUT: Final = "{lines} left out here: the log has a limit of {limit} bytes."


class _Line(NamedTuple):
    """A line as it came, cut to what is kept of it."""

    level: Level
    after_ms: float
    text: bytes
    is_cut: bool

    @property
    def cost_bytes(self) -> int:
        return len(self.text) + _LINE_COST_BYTES

    def decode(self) -> LogLine:
        message = self.text.removesuffix(b"\r").decode(errors="replace")
        if self.is_cut:
            message = f"{message.rstrip(_HALF)}{CUT_SIGN}"
        return LogLine(after_ms=self.after_ms, level=self.level, message=message)


class Log:
    """Collects the lines of stdout and stderr in the order in which they come.

    Of a log that is too long, the beginning and the end are kept, each to half of the limit.
    """

    def __init__(self, limit_bytes: int, *, now_ms: Callable[[], float]) -> None:
        self._limit_bytes = limit_bytes
        self._half_bytes = limit_bytes // 2
        self._now_ms = now_ms
        """Milliseconds since the program started."""
        self._open: dict[Level, bytes] = {"INFO": b"", "ERROR": b""}
        self._skipping: set[Level] = set()
        """Streams whose current line was too long; the rest of that line is skipped."""
        self._head: list[_Line] = []
        self._head_left_bytes: int | None = self._half_bytes
        """None: a line did not fit into the head any more, and it is complete."""
        self._tail: deque[_Line] = deque()
        self._tail_bytes = 0
        self._left_out = 0

    def take(self, level: Level, data: bytes) -> None:
        """Add data; an unfinished last line is kept until its end comes."""
        *whole, rest = (self._open[level] + data).split(b"\n")
        if whole and level in self._skipping:
            self._skipping.remove(level)
            whole.pop(0)
        self._add(level, whole)
        if len(rest) > LINE_BYTES and level not in self._skipping:
            self._add(level, [rest])
            self._skipping.add(level)
        self._open[level] = b"" if level in self._skipping else rest

    def close(self, *, is_cut: bool = False) -> tuple[LogLine, ...]:
        """All kept lines, with those that had no end.

        `is_cut`: whether the program was ended from outside, perhaps within such a line.
        """
        for level, rest in self._open.items():
            if rest:
                self._add(level, [rest], is_cut=is_cut)
                self._open[level] = b""
        head, tail = ([line.decode() for line in part] for part in (self._head, self._tail))
        return (*head, *self._describe_left_out(), *tail)

    def _add(self, level: Level, lines: list[bytes], *, is_cut: bool = False) -> None:
        now_ms, at = self._now_ms(), 0
        while at < len(lines) and self._head_left_bytes is not None:
            line = self._cut(level, now_ms, lines[at], is_cut=is_cut)
            if line.cost_bytes > self._head_left_bytes:
                self._head_left_bytes = None
            else:
                self._head_left_bytes -= line.cost_bytes
                self._head.append(line)
                at += 1
        self._add_to_tail(level, now_ms, lines[at:], is_cut=is_cut)

    def _add_to_tail(
        self, level: Level, now_ms: float, lines: list[bytes], *, is_cut: bool
    ) -> None:
        """Add lines from the last one back, so that a flood costs no more than what is kept."""
        kept: list[_Line] = []
        kept_bytes = 0
        for text in reversed(lines):
            line = self._cut(level, now_ms, text, is_cut=is_cut)
            if kept_bytes + line.cost_bytes > self._half_bytes:
                break
            kept_bytes += line.cost_bytes
            kept.append(line)
        is_flood = len(kept) < len(lines)
        while self._tail and (is_flood or self._tail_bytes + kept_bytes > self._half_bytes):
            line = self._tail.popleft()
            self._tail_bytes -= line.cost_bytes
            self._left_out += 1
        self._left_out += len(lines) - len(kept)
        self._tail.extend(reversed(kept))
        self._tail_bytes += kept_bytes

    def _cut(self, level: Level, now_ms: float, text: bytes, *, is_cut: bool) -> _Line:
        most_bytes = max(0, min(LINE_BYTES, self._half_bytes - _LINE_COST_BYTES))
        return _Line(level, now_ms, text[:most_bytes], is_cut or len(text) > most_bytes)

    def _describe_left_out(self) -> Iterator[LogLine]:
        if self._left_out:
            lines = "1 line is" if self._left_out == 1 else f"{self._left_out} lines are"
            message = _LEFT_OUT.format(lines=lines, limit=self._limit_bytes)
            after_ms = self._tail[0].after_ms
            yield LogLine(after_ms=after_ms, level="WARN", message=message)


class Facts:
    """Splits what comes through the facts' descriptor into lines, and drops excess ones."""

    def __init__(self) -> None:
        self.any = False
        """Whether anything was written, even an unfinished line."""
        self.cut = False
        self._rest = b""
        self._lines = 0
        self._skipping = False
        """Whether the rest of a line that is too long is being skipped."""

    def take(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that are complete now; an unfinished last line is dropped at the end."""
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
    """Open a pipe whose two descriptors are above the standard numbers that a child's ends get."""
    ends = os.pipe2(os.O_CLOEXEC)
    try:
        read, write = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _ABOVE_STANDARD) for end in ends)
    finally:
        for end in ends:
            os.close(end)
    return read, write


class PipeReader:
    """Passes on whatever comes out of a pipe."""

    def __init__(self, descriptor: int, take: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._take = take
        self._is_open = True
        os.set_blocking(descriptor, False)
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    def finish(self) -> None:
        """Pass on what is still in the pipe, and close it; nobody writes any more."""
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
        """Done when a full pipe has room again. None: the pipe is not full."""
        os.set_blocking(descriptor, False)

    async def write(self, message: bytes) -> None:
        """Write the whole message; a reader that is gone is no error here: its exit tells."""
        left = memoryview(message)
        try:
            while left and self._is_open:
                left = left[await self._some(left) :]
        except BrokenPipeError:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Close the pipe."""
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
