"""Look at a body as it comes: as text, and as what it holds when it is compressed or an archive."""

import tempfile
from collections.abc import Callable
from typing import IO, Final

from runners.kit.leak_scan.layers import Layers
from runners.kit.leak_scan.leak import ScanLimits, UnscannableError
from runners.kit.leak_scan.members import is_zip
from runners.kit.leak_scan.needles import Needles
from runners.kit.leak_scan.packed import (
    FAULTS,
    PROBE_BYTES,
    Opened,
    embedded,
    is_packed,
    is_surely_packed,
    is_zip_member,
    means_something,
    opener_for,
)
from runners.kit.leak_scan.windows import Windows

_IN_MEMORY_BYTES: Final = 1024 * 1024
_MOST_AT_ONCE: Final = 8
"""So many compressed streams may be open within one body."""
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_TAR_MARK: Final = b"ustar"
_TAR_MARK_AT: Final = 257

OpenArchive = Callable[[IO[bytes], int], bool]
"""Whether the archive of a file holds a secret; the number says how deep it lies."""


class Budget:
    """How much may still be unpacked."""

    def __init__(self, limits: ScanLimits) -> None:
        self._left_bytes = limits.unpacked_bytes

    def spend(self, size_bytes: int) -> None:
        """So much more was unpacked.

        Raises:
            UnscannableError: it is too much.
        """
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            raise UnscannableError("it holds more than can be unpacked here")


class Reading:
    """One scan: what is looked for, and what it may cost."""

    def __init__(self, needles: Needles, limits: ScanLimits, archive: OpenArchive) -> None:
        self.needles = needles
        self.limits = limits
        self.budget = Budget(limits)
        self.layers = Layers(needles, limits, self.holds)
        self.archive = archive

    def holds(self, body: bytes, depth: int) -> bool:
        """Whether a body that came whole out of a text holds a secret."""
        if len(body) > self.limits.run_bytes // 2 and is_packed(body):
            raise UnscannableError("an archive in its text is too long to be opened there")
        reader = Body(self, depth=depth)
        return reader.feed(body) is not None or reader.close() is not None


class _Stream:
    """A compressed stream, and the body that comes out of it."""

    def __init__(self, make: Callable[[], Opened], reading: Reading, depth: int) -> None:
        if depth > reading.limits.depth:
            raise UnscannableError(f"more than {reading.limits.depth} archives lie in each other")
        self._decoder = make()
        self._body = Body(reading, depth=depth)
        self._budget = reading.budget
        self.is_over = False

    def holds(self, content: bytes) -> bool:
        """Whether what this much more means holds a secret."""
        if self.is_over:
            return False
        try:
            return any(self._holds(piece) for piece in self._decoder.feed(content))
        except FAULTS:  # it was no such stream, or nobody can read on either
            self.is_over = True
            return self.ends_in_secret()

    def ends_in_secret(self) -> bool:
        """Whether what is left to look at holds a secret."""
        return self._body.close() is not None

    def _holds(self, piece: bytes) -> bool:
        self._budget.spend(len(piece))
        return self._body.feed(piece) is not None


class Body:
    """Fed with pieces, it says roughly where a secret is, once it came upon one."""

    def __init__(self, reading: Reading, *, depth: int, has_archive: bool = False) -> None:
        """`has_archive`: whoever feeds it looks into the archive that it is."""
        self._reading = reading
        self._depth = depth
        self._windows = Windows(reading.needles, reading.limits, self._look)
        self._streams: list[_Stream] = []
        self._archive: IO[bytes] | None = None
        """A copy of the archive that it is. None: it is none, or somebody else has it."""
        self._start = b""
        self._is_begun = False
        self._is_archive = has_archive
        self._at = 0
        self._unread = b""
        """The end of what came, in which a compressed stream may begin."""

    def feed(self, content: bytes) -> int | None:
        """Take a piece. Gives where a secret is; None: none was found yet."""
        if not self._is_begun:
            self._start += content
            if len(self._start) < PROBE_BYTES:
                return None
            content = self._begin()
        return self._take(content) if content else None

    def close(self) -> int | None:
        """It is over. Gives where a secret is; None: none was found."""
        try:
            return self._last_place()
        finally:
            if self._archive is not None:
                self._archive.close()

    def _last_place(self) -> int | None:
        if not self._is_begun and (content := self._begin()):
            place = self._take(content)
            if place is not None:
                return place
        if self._unread and self._holds_embedded(b"", is_last=True):
            return self._at
        if any(stream.ends_in_secret() for stream in self._streams):
            return self._at
        if self._archive is not None and self._archive_holds(self._archive):
            return self._at
        return self._windows.close()

    def _archive_holds(self, file: IO[bytes]) -> bool:
        """Not what begins like an archive by chance, and ends like none."""
        is_archive = self._is_archive or is_zip(file)
        return is_archive and self._reading.archive(file, self._depth + 1)

    def _begin(self) -> bytes:
        start, self._start, self._is_begun = self._start, b"", True
        if self._is_archive:
            return start
        is_tar = start[_TAR_MARK_AT:].startswith(_TAR_MARK)
        if is_tar or start.startswith(_ZIP):
            self._is_archive = is_tar or is_zip_member(start)
            # Closed by `close`, or with the scan: it has no name on any disk.
            self._archive = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115
        elif (make := opener_for(start)) is not None and self._is_opened(make, start):
            self._streams.append(_Stream(make, self._reading, self._depth + 1))
        return start

    def _is_opened(self, make: Callable[[], Opened], start: bytes) -> bool:
        """Not what is too deep to be opened, and is none but by chance."""
        return self._depth < self._reading.limits.depth or is_surely_packed(make, start)

    def _take(self, content: bytes) -> int | None:
        if self._archive is not None:
            self._archive.write(content)
        if any(stream.holds(content) for stream in self._streams):
            return self._at
        if not self._is_archive and self._holds_embedded(content):
            return self._at
        self._unread = b"" if self._is_archive else (self._unread + content)[-PROBE_BYTES:]
        self._at += len(content)
        return self._windows.feed(content)

    def _look(self, window: bytes) -> bool:
        return self._reading.layers.hold(window, self._depth)

    def _holds_embedded(self, content: bytes, *, is_last: bool = False) -> bool:
        """Compressed streams that begin in the midst of it are read on beside it."""
        is_start = self._at == len(self._unread)
        content = self._unread + content
        first = 1 if is_start and self._streams else 0
        end = len(content) - (0 if is_last else PROBE_BYTES)
        begun = []
        for mark_at, at, make in embedded(content):
            may_be = first <= mark_at < end
            if may_be and means_something(make, content[at : at + PROBE_BYTES]):
                begun.append((at, self._begun(make)))
        return any(stream.holds(content[at:]) for at, stream in begun)

    def _begun(self, make: Callable[[], Opened]) -> _Stream:
        stream = _Stream(make, self._reading, self._depth + 1)
        self._streams = [one for one in self._streams if not one.is_over] + [stream]
        if len(self._streams) > _MOST_AT_ONCE:
            raise UnscannableError("too many compressed streams lie in each other")
        return stream
