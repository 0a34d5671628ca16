"""Decodes files and everything in them, and finds secrets that are left.

It shares no code with the first search, which encodes the secrets and searches for the result:
what one of them misses, the other must not miss for the same reason.
"""

import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Final

from redaction.clean import (
    Leak,
    MemberKind,
    ScanLimits,
    UnscannableError,
    UnscannableMembersError,
)
from redaction.scanner.decoding import FieldJoiner, Layers
from redaction.scanner.decompress import (
    FAULTS,
    PROBE_BYTES,
    Decompressor,
    detect_decompressor,
    embedded,
    is_packed,
    is_surely_packed,
    is_zip_member,
    means_something,
)
from redaction.scanner.members import Member, begins_as_zip, is_zip, read_members
from redaction.scanner.needles import Needles
from sandbox.workspace import open_regular_file

_IN_MEMORY_BYTES: Final = 1024 * 1024
_MOST_AT_ONCE: Final = 8
"""How many compressed streams may be open within one body."""
_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_TAR_MARK: Final = b"ustar"
_TAR_MARK_AT: Final = 257

OpenArchive = Callable[[IO[bytes], int], bool]
"""Whether an archive has a secret; the number is its depth."""


class Budget:
    """How many bytes may still be decompressed."""

    def __init__(self, limits: ScanLimits) -> None:
        self._left_bytes = limits.unpacked_bytes

    @property
    def is_spent(self) -> bool:
        """Whether the limit is exceeded."""
        return self._left_bytes < 0

    def spend(self, size_bytes: int) -> None:
        """Subtract what was decompressed.

        Raises:
            UnscannableError: the limit is exceeded.
        """
        self._left_bytes -= size_bytes
        if self.is_spent:
            raise UnscannableError("it holds more than can be unpacked here")


class ScanContext:
    """One scan: its needles, limits and budget."""

    def __init__(self, needles: Needles, limits: ScanLimits, archive: OpenArchive) -> None:
        self.needles = needles
        self.limits = limits
        self.budget = Budget(limits)
        self.layers = Layers(needles, limits, self.holds)
        self.archive = archive

    def holds(self, body: bytes, depth: int) -> bool:
        """Whether a body decoded from a text has a secret."""
        if len(body) > self.limits.run_bytes // 2 and is_packed(body):
            raise UnscannableError("an archive in its text is too long to be opened there")
        reader = Body(self, depth=depth)
        return reader.feed(body) is not None or reader.close() is not None


class _Stream:
    """A compressed stream and its decompressed body."""

    def __init__(self, make: Callable[[], Decompressor], context: ScanContext, depth: int) -> None:
        if depth > context.limits.depth:
            raise UnscannableError(f"more than {context.limits.depth} archives are nested")
        self._decoder = make()
        self._body = Body(context, depth=depth)
        self._budget = context.budget
        self.is_over = False

    def holds(self, content: bytes) -> bool:
        """Whether more input has a secret once decompressed."""
        if self.is_over:
            return False
        try:
            return any(self._holds(piece) for piece in self._decoder.feed(content))
        except FAULTS:  # it was no such stream, or nobody can read on either
            self.is_over = True
            return self.ends_in_secret()

    def ends_in_secret(self) -> bool:
        """Whether the rest has a secret."""
        return self._body.close() is not None

    def _holds(self, piece: bytes) -> bool:
        self._budget.spend(len(piece))
        return self._body.feed(piece) is not None


class Body:
    """Scans a body piece by piece, with what is compressed in it, and says where a secret is."""

    def __init__(self, context: ScanContext, *, depth: int, has_archive: bool = False) -> None:
        """`has_archive`: it is an archive whose members the caller scans."""
        self._context = context
        self._depth = depth
        self._windows = Windows(context.needles, context.limits, self._scan)
        self._streams: list[_Stream] = []
        self._archive: IO[bytes] | None = None
        """A copy of the archive that it is. None: no archive, or the caller scans it."""
        self._start = b""
        self._has_begun = False
        self._is_archive = has_archive
        self._at = 0
        self._unread = b""
        """The last bytes, in which a compressed stream may begin."""

    def feed(self, content: bytes) -> int | None:
        """Scan a piece. The offset of a secret; None: none so far."""
        if not self._has_begun:
            self._start += content
            if len(self._start) < PROBE_BYTES:
                return None
            content = self._begin()
        return self._take(content) if content else None

    def close(self) -> int | None:
        """Scan the rest. The offset of a secret; None: none was found."""
        try:
            return self._last_place()
        finally:
            if self._archive is not None:
                self._archive.close()

    def _last_place(self) -> int | None:
        if not self._has_begun and (content := self._begin()):
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
        """Whether it really is an archive, and has a secret."""
        is_archive = self._is_archive or is_zip(file)
        return is_archive and self._context.archive(file, self._depth + 1)

    def _begin(self) -> bytes:
        start, self._start, self._has_begun = self._start, b"", True
        if self._is_archive:
            return start
        is_tar = start[_TAR_MARK_AT:].startswith(_TAR_MARK)
        if is_tar or start.startswith(_ZIP):
            self._is_archive = is_tar or is_zip_member(start)
            # Closed by `close`, or with the scan: it has no name on any disk.
            self._archive = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115
        elif (make := detect_decompressor(start)) is not None and self._may_open(make, start):
            self._streams.append(_Stream(make, self._context, self._depth + 1))
        return start

    def _may_open(self, make: Callable[[], Decompressor], start: bytes) -> bool:
        """Whether to decompress it: not if it is too deep and only looks compressed."""
        return self._depth < self._context.limits.depth or is_surely_packed(make, start)

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

    def _scan(self, window: bytes) -> bool:
        return self._context.layers.hold(window, self._depth)

    def _holds_embedded(self, content: bytes, *, is_last: bool = False) -> bool:
        """Scan compressed streams that begin within the body, beside it."""
        is_start = self._at == len(self._unread)
        content = self._unread + content
        first = 1 if is_start and self._streams else 0
        end = len(content) - (0 if is_last else PROBE_BYTES)
        begun = []
        for mark_at, at, make in embedded(content):
            may_be = first <= mark_at < end
            if may_be and means_something(make, content[at : at + PROBE_BYTES]):
                begun.append((at, self._begin_stream(make)))
        return any(stream.holds(content[at:]) for at, stream in begun)

    def _begin_stream(self, make: Callable[[], Decompressor]) -> _Stream:
        stream = _Stream(make, self._context, self._depth + 1)
        self._streams = [one for one in self._streams if not one.is_over] + [stream]
        if len(self._streams) > _MOST_AT_ONCE:
            raise UnscannableError("too many compressed streams are nested")
        return stream


_PIECE_BYTES: Final = 256 * 1024
_MOST_LEAKS: Final = 20
_USUAL: Final = ScanLimits()


def scan_file(
    path: Path,
    secrets: Iterable[str],
    *,
    kind: MemberKind = MemberKind.FILE,
    limits: ScanLimits = _USUAL,
) -> tuple[Leak, ...]:
    """Find secrets in a file; it blocks.

    Raises:
        UnscannableMembersError: one could be in some members of the archive and not be found.
        UnscannableError: one could be elsewhere in it and not be found.
        OSError: it cannot be read.
    """
    needles = Needles(secrets)
    if not needles:
        return ()
    with open_regular_file(path) as file:
        return tuple(_Scan(needles, limits).leaks(file, kind))


def scan_bytes(
    content: bytes,
    secrets: Iterable[str],
    *,
    kind: MemberKind = MemberKind.RESULT,
    limits: ScanLimits = _USUAL,
) -> tuple[Leak, ...]:
    """Find secrets in bytes.

    Raises:
        UnscannableError: one could be in them and not be found.
    """
    needles = Needles(secrets)
    if not needles:
        return ()
    body = Body(_Scan(needles, limits).context, depth=0)
    place = _place_in(body, (content,))
    return () if place is None else (Leak(kind, _describe_place(place)),)


def make_context(needles: Needles, limits: ScanLimits) -> ScanContext:
    """A separate scan for a body that was found in a text."""
    return _Scan(needles, limits).context


class _Scan:
    def __init__(self, needles: Needles, limits: ScanLimits) -> None:
        self.context = ScanContext(needles, limits, self._archive_holds)
        self._limits = limits
        self._leaks: list[Leak] = []

    def leaks(self, file: IO[bytes], kind: MemberKind) -> list[Leak]:
        has_archive = is_zip(file)
        if has_archive:
            self._scan_archive(file, depth=1)
        body = Body(self.context, depth=0, has_archive=has_archive and begins_as_zip(file))
        file.seek(0)
        place = _place_in(body, iter(lambda: file.read(_PIECE_BYTES), b""))
        if place is not None and not self._leaks:
            self._leaks.append(Leak(kind, _describe_place(place)))
        return self._leaks

    def _scan_archive(self, file: IO[bytes], *, depth: int) -> None:
        unscannable: dict[str, str] = {}
        for member in read_members(file, most=self._limits.members):
            try:
                self._leaks += self._leaks_of(member, depth)
            except UnscannableError as problem:
                if self.context.budget.is_spent:
                    raise
                unscannable[member.path] = str(problem)
            if len(self._leaks) >= _MOST_LEAKS:
                return
        if unscannable and not self._leaks:
            raise UnscannableMembersError(unscannable)

    def _archive_holds(self, file: IO[bytes], depth: int) -> bool:
        if depth > self._limits.depth:
            raise UnscannableError(f"more than {self._limits.depth} archives are nested")
        members = read_members(file, most=self._limits.members)
        return any(self._leaks_of(member, depth) for member in members)

    def _leaks_of(self, member: Member, depth: int) -> list[Leak]:
        if self.context.holds(member.name, depth):
            return [Leak(MemberKind.MEMBER_NAME, member.place)]
        body = Body(self.context, depth=depth)
        place = _place_in(body, map(self._spend, member.content))
        return (
            []
            if place is None
            else [Leak(member.kind, f"{member.place}, {_describe_place(place)}")]
        )

    def _spend(self, piece: bytes) -> bytes:
        self.context.budget.spend(len(piece))
        return piece


def _place_in(body: Body, pieces: Iterable[bytes]) -> int | None:
    """The offset of a secret. None: there is none."""
    for piece in pieces:
        if (place := body.feed(piece)) is not None:
            return place
    return body.close()


def _describe_place(place: int) -> str:
    return f"after byte {place}"


_LEAST_OVERLAP_BYTES: Final = 8192
_GROWTH: Final = 48
"""How many times longer a secret is in three nested encodings."""
_RUN_END: Final = re.compile(rb"[^A-Za-z0-9+/_\-=\\\r\n%]")
_LONG_RUN_BYTES: Final = 4096

ScanWindow = Callable[[bytes], bool]


class Windows:
    """Scans a stream in overlapping windows and says where a secret is."""

    def __init__(self, needles: Needles, limits: ScanLimits, scan: ScanWindow) -> None:
        least = max(_LEAST_OVERLAP_BYTES, needles.longest_bytes * _GROWTH)
        self._overlap_bytes = min(least, limits.run_bytes // 2)
        self._window_bytes = max(limits.window_bytes, 4 * self._overlap_bytes)
        self._most_bytes = max(limits.run_bytes, 2 * self._window_bytes)
        self._scan = scan
        self._typed = FieldJoiner(tail_bytes=self._overlap_bytes)
        self._held = bytearray()
        self._known_bytes = 0
        """How many of the held bytes, from the first one, were already scanned."""
        self._at = 0
        """The offset of the held bytes in the stream."""

    def feed(self, content: bytes) -> int | None:
        """Scan the windows that are full. The rough offset of a secret; None: none found."""
        self._held += content
        while len(self._held) >= self._window_bytes:
            end = self._end_of_window()
            if end is None:
                return None
            if (place := self._scan_to(end)) is not None:
                return place
        return None

    def close(self) -> int | None:
        """Scan the rest."""
        return self._scan_to(len(self._held)) if len(self._held) > self._known_bytes else None

    def _end_of_window(self) -> int | None:
        """The window's end, outside any run of encoded bytes. None: more input is needed."""
        end = min(len(self._held), max(self._window_bytes, self._known_bytes + 1))
        run_from = end - _LONG_RUN_BYTES
        if _RUN_END.search(self._held, run_from, end) is not None:
            return end
        over = _RUN_END.search(self._held, end)
        if over is not None:
            return min(over.start(), self._most_bytes)
        return self._most_bytes if len(self._held) >= self._most_bytes else None

    def _scan_to(self, end: int) -> int | None:
        window = bytes(self._held[:end])
        typed = self._typed.join_fields(window, known_bytes=self._known_bytes)
        if self._scan(window) or (typed and self._scan(typed)):
            return self._at + self._known_bytes
        kept = min(self._overlap_bytes, end)
        del self._held[: end - kept]
        self._at += end - kept
        self._known_bytes = kept
        return None
