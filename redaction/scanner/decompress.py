"""Detects and decompresses compressed data, within limits."""

import bz2
import codecs
import lzma
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Protocol

import brotli
import zstandard

_PIECE_BYTES: Final = 256 * 1024
_GZIP: Final = b"\x1f\x8b\x08"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_BZIP2: Final = b"BZh"
_BZIP2_BLOCK: Final = b"1AY&SY"
_XZ: Final = b"\xfd7zXZ\x00"
_XZ_MEMORY_BYTES: Final = 80 << 20
"""How much memory xz's highest preset needs."""
_ZIP_MEMBER: Final = b"PK\x03\x04"
_PICTURES: Final = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"\x1aE\xdf\xa3", _ZIP_MEMBER)
"""Magic numbers of pictures and archives, which are no raw stream."""
PROBE_BYTES: Final = 4096
_SURE_BYTES: Final = 64 * 1024
"""Data that decompresses this far does so not by chance."""
_ZIP_METHODS: Final = frozenset({*range(20), 93, 94, 95, 96, 97, 98, 99})
_LAST_ZIP_VERSION: Final = 63
_ZIP_UNUSED_FLAGS: Final = 0x0780
_ZSTD_STEP_BYTES: Final = 256
"""How much is fed to zstd at once: a block of 4 bytes may give 128 KiB, so 8 MiB at most."""
_TELLING_BYTES: Final = 64
_LEAST_PLAUSIBLE_BYTES: Final = 4
_CONTROLS: Final = bytes({*range(0x20), 0x7F} - set(b"\t\n\r\x1b"))
"""Control characters, which no text has."""


class Decompressor(Protocol):
    """A decompressor of one format with bounded output at a time."""

    def feed(self, content: bytes) -> Iterator[bytes]:
        """Decompress more input, piece by piece."""


class _Deflated:
    """Deflate, one stream after the other, as gzip files may have them."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self.is_over = False
        """Whether something other than a further stream follows."""
        self._stream = zlib.decompressobj(bits)

    def feed(self, content: bytes) -> Iterator[bytes]:
        while content:
            piece = self._stream.decompress(content, _PIECE_BYTES)
            if piece:
                yield piece
            content = self._stream.unconsumed_tail
            if self._stream.eof:
                content = self._stream.unused_data
                self._stream = zlib.decompressobj(self._bits)
                if content and not _begins_alike(content, self._bits):
                    self.is_over = True
                    return


class _Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    def feed(self, content: bytes) -> Iterator[bytes]:
        while True:
            piece = self._stream.process(content, output_buffer_limit=_PIECE_BYTES)
            content = b""
            if piece:
                yield piece
            if self._stream.is_finished() or self._stream.can_accept_more_data():
                return


class _Zstd:
    def __init__(self) -> None:
        unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        self._stream = unpacker.decompressobj(read_across_frames=True)

    def feed(self, content: bytes) -> Iterator[bytes]:
        for at in range(0, len(content), _ZSTD_STEP_BYTES):
            piece = self._stream.decompress(content[at : at + _ZSTD_STEP_BYTES])
            if piece:
                yield piece


class _Blockwise:
    """Bzip2 or xz, one stream after the other."""

    def __init__(self, make: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]) -> None:
        self._make = make
        self._stream = make()

    def feed(self, content: bytes) -> Iterator[bytes]:
        while content or not self._stream.needs_input:
            piece = self._stream.decompress(content, _PIECE_BYTES)
            content = b""
            if piece:
                yield piece
            if self._stream.eof:
                content = self._stream.unused_data
                self._stream = self._make()


FAULTS: Final = (zlib.error, brotli.error, zstandard.ZstdError, lzma.LZMAError, OSError)
"""What the libraries raise for data of another format; bzip2 raises `OSError`."""


def detect_decompressor(start: bytes) -> Callable[[], Decompressor] | None:
    """Detect the format by the first bytes. None: it is not compressed."""
    for magic, marked in _MARKED:
        if start.startswith(magic):
            return marked
    if _is_zlib(start):
        return _zlib
    if _is_text(start) or start.startswith(_PICTURES):
        return None
    return next((make for make in (_Brotli, raw_deflate) if means_something(make, start)), None)


def is_packed(content: bytes) -> bool:
    """Whether it is an archive or compressed data, and not by chance.

    What only looks compressed soon fails, or ends long before its data does.
    """
    if content.startswith(_ZIP_MEMBER):
        return is_zip_member(content)
    make = detect_decompressor(content[:PROBE_BYTES])
    return make is not None and _goes_on(make, content[:_SURE_BYTES])


def is_zip_member(start: bytes) -> bool:
    """Whether the bytes are a plausible local header of a zip member."""
    version, flags, method = (int.from_bytes(start[at : at + 2], "little") for at in (4, 6, 8))
    is_known = method in _ZIP_METHODS and version & 0xFF <= _LAST_ZIP_VERSION
    return start.startswith(_ZIP_MEMBER) and is_known and flags & _ZIP_UNUSED_FLAGS == 0


def is_surely_packed(make: Callable[[], Decompressor], start: bytes) -> bool:
    """Whether it surely is compressed: compressed data hardly repeats itself.

    To Brotli, a run of one letter may decompress to a longer one, without end.
    """
    few = min(len(start), 256) // 2
    return len(set(start)) > few and means_something(make, start)


def embedded(content: bytes) -> Iterator[tuple[int, int, Callable[[], Decompressor]]]:
    """Yield each magic number's place, its stream's place, and the decompressor."""
    for magic, make in _MARKED:
        at = content.find(magic)
        while at >= 0:
            yield at, at, make
            at = content.find(magic, at + 1)
    at = content.find(_ZIP_MEMBER)
    while at >= 0:
        head = content[at : at + 30]
        if len(head) == 30 and head[8:10] == b"\x08\x00":
            lengths = int.from_bytes(head[26:28], "little"), int.from_bytes(head[28:], "little")
            yield at, at + 30 + sum(lengths), raw_deflate
        at = content.find(_ZIP_MEMBER, at + 1)


def raw_deflate() -> Decompressor:
    """Raw deflate, as zip archives have it and some servers send it."""
    return _Deflated(-15)


def _zlib() -> Decompressor:
    return _Deflated(15)


def _gzip() -> Decompressor:
    return _Deflated(31)


def _bzip2() -> Decompressor:
    return _Blockwise(bz2.BZ2Decompressor)


def _xz() -> Decompressor:
    return _Blockwise(partial(lzma.LZMADecompressor, memlimit=_XZ_MEMORY_BYTES))


_MARKED: Final[tuple[tuple[bytes, Callable[[], Decompressor]], ...]] = (
    (_GZIP, _gzip), (_ZSTD, _Zstd), (_BZIP2, _bzip2), (_XZ, _xz),
)  # fmt: skip


def _is_zlib(start: bytes) -> bool:
    return len(start) > 2 and start[0] == 0x78 and int.from_bytes(start[:2], "big") % 31 == 0


def _is_text(start: bytes) -> bool:
    """Whether it is UTF-8 text, possibly cut at its end; compressed data never is."""
    try:
        codecs.utf_8_decode(start, "strict", False)  # noqa: FBT003 - of the library
    except UnicodeDecodeError:
        return False
    return len(start.translate(None, _CONTROLS)) == len(start)


def _begins_alike(content: bytes, bits: int) -> bool:
    return bits == 31 and content.startswith(_GZIP)


def means_something(make: Callable[[], Decompressor], start: bytes) -> bool:
    """Whether the start decompresses: magic numbers occur by chance, and some formats have none."""
    try:
        piece = next(make().feed(start[:PROBE_BYTES]), b"")
    except FAULTS:
        return False
    return len(piece) >= _LEAST_PLAUSIBLE_BYTES or _tells_late(start)


def _goes_on(make: Callable[[], Decompressor], content: bytes) -> bool:
    decompressor, size = make(), 0
    try:
        for piece in decompressor.feed(content):
            if isinstance(decompressor, _Brotli) and piece[:_TELLING_BYTES] in content:
                return False  # a header of four bytes has it copy what follows: any bytes may
            size += len(piece)
    except FAULTS:
        return False
    # Raw data alone has no sum at its end that would tell of chance.
    if make is raw_deflate and isinstance(decompressor, _Deflated) and decompressor.is_over:
        return False
    return size >= _LEAST_PLAUSIBLE_BYTES or _tells_late(content)


def _tells_late(start: bytes) -> bool:
    """Whether the format yields whole blocks, which may be longer than the probe."""
    is_bzip2 = start.startswith(_BZIP2) and start[4:10] == _BZIP2_BLOCK
    return is_bzip2 or start.startswith((_ZSTD, _XZ))
