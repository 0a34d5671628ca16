"""Detects compressed data by its first bytes, decompresses it and compresses it again."""

import base64
import binascii
import bz2
import codecs
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any, Final

import brotli
import zstandard

from redaction.archives.limits import Budget, UnsearchableFileError
from redaction.compiled import compile_re2

START_BYTES: Final = 512
"""How many bytes of a file are read to detect its kind."""


class Kind(Enum):
    """A file's format, which decides how it is searched."""

    PLAIN = auto()
    """Text, or bytes that are searched as they are."""
    PICTURE = auto()
    ZIP = auto()
    TAR = auto()
    GZIP = auto()
    ZLIB = auto()
    ZSTD = auto()
    BZIP2 = auto()
    XZ = auto()
    BROTLI = auto()


_STARTS: Final[tuple[tuple[bytes, Kind], ...]] = (
    (b"\x89PNG\r\n\x1a\n", Kind.PICTURE),
    (b"\xff\xd8\xff", Kind.PICTURE),
    (b"GIF8", Kind.PICTURE),
    (b"\x1aE\xdf\xa3", Kind.PICTURE),
    (b"PK\x03\x04", Kind.ZIP),
    (b"PK\x05\x06", Kind.ZIP),
    (b"\x1f\x8b\x08", Kind.GZIP),
    (b"\x28\xb5\x2f\xfd", Kind.ZSTD),
    (b"BZh", Kind.BZIP2),
    (b"\xfd7zXZ\x00", Kind.XZ),
)
_REFUSED: Final[tuple[tuple[bytes, str], ...]] = (
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x04\x22\x4d\x18", "data that LZ4 packed"),
    (b"%PDF-", "a PDF file"),
)
_CONTROLS: Final = frozenset({*range(0x20), 0x7F} - set(b"\t\n\r\f\x1b"))
"""Control characters, which no text has and compressed data has soon."""
_ZLIB_STARTS: Final = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")


def detect_kind(start: bytes, name: str = "") -> Kind:
    """Detect the kind by the first bytes; Brotli has no magic number, so its file name decides.

    Raises:
        UnsearchableFileError: secrets in such a file cannot be found.
    """
    for mark, what in _REFUSED:
        if start.startswith(mark):
            raise UnsearchableFileError(f"it is {what}, which cannot be searched")
    if _is_text(start):
        return Kind.BROTLI if name.endswith(".br") else Kind.PLAIN
    for mark, kind in _STARTS:
        if start.startswith(mark):
            return kind
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return Kind.PICTURE
    if start[257:262] == b"ustar":
        return Kind.TAR
    if start.startswith(_ZLIB_STARTS):
        return Kind.ZLIB
    return Kind.BROTLI if name.endswith(".br") else Kind.PLAIN


def is_json(start: bytes) -> bool:
    """Whether it begins like JSON or JSON lines."""
    return start.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"[")


def _is_text(start: bytes) -> bool:
    """Whether it is a text that begins like something else, as `x^2` does like zlib."""
    if not _CONTROLS.isdisjoint(start):
        return False
    try:
        codecs.utf_8_decode(start, "strict", False)  # noqa: FBT003 - it may be cut at its end
    except UnicodeDecodeError:
        return False
    return True


PIECE_BYTES: Final = 1 << 20
_GZIP_WINDOW: Final = 31
_BROTLI_QUALITY: Final = 4
_ZSTD_WINDOW_BYTES: Final = 32 << 20
_XZ_MEMORY_BYTES: Final = 80 << 20
"""How much memory xz's highest preset needs."""
_ZSTD_BYTES: Final = 256
"""How much zstd input is decompressed at once: 8 MiB of output at most, with no other bound."""
_BROKEN: Final = (
    zlib.error,
    lzma.LZMAError,
    zstandard.ZstdError,
    brotli.error,
    OSError,
    EOFError,
    ValueError,
)
"""What the libraries raise for data that is not what its first bytes promised."""


class _BrotliInflater:
    """Brotli with the interface of bz2 and lzma."""

    needs_input = True
    unused_data = b""

    def __init__(self) -> None:
        self._inner = brotli.Decompressor()

    @property
    def eof(self) -> bool:
        return bool(self._inner.is_finished())

    def decompress(self, data: bytes, max_length: int = PIECE_BYTES) -> bytes:
        found: bytes = self._inner.process(data, output_buffer_limit=max_length)
        self.needs_input = not found and bool(self._inner.can_accept_more_data())
        return found


def decompress(kind: Kind, pieces: Iterable[bytes], budget: Budget) -> Iterator[bytes]:
    """Yield the decompressed pieces; concatenated streams count as one.

    Raises:
        UnsearchableFileError: it is broken, or too long.
    """
    packed_bytes = unpacked_bytes = 0
    try:
        for taken_bytes, piece in _DECOMPRESSORS[kind](pieces):
            packed_bytes, unpacked_bytes = taken_bytes, unpacked_bytes + len(piece)
            budget.spend(len(piece))
            budget.check_ratio(packed_bytes, unpacked_bytes)
            yield piece
    except _BROKEN as problem:
        raise UnsearchableFileError(f"it is broken {kind.name.lower()} data") from problem


def compress(kind: Kind, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces, compressed in the same format."""
    packer = _COMPRESSORS[kind]()
    work = packer.process if kind is Kind.BROTLI else packer.compress
    for piece in pieces:
        yield work(piece)
    yield packer.finish() if kind is Kind.BROTLI else packer.flush()


def _decompress_zlib(window: int) -> Callable[[Iterable[bytes]], Iterator[tuple[int, bytes]]]:
    def decompress_pieces(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        inflater = zlib.decompressobj(window)
        size = 0
        for piece in pieces:
            size += len(piece)
            left = piece
            while left:
                if inflater.eof:
                    inflater = zlib.decompressobj(window)
                yield size, inflater.decompress(left, PIECE_BYTES)
                left = inflater.unconsumed_tail or inflater.unused_data
        while not inflater.eof and (rest := inflater.decompress(b"", PIECE_BYTES)):
            yield size, rest
        if not inflater.eof:
            raise EOFError

    return decompress_pieces


def _decompress_with(
    make: Callable[[], Any],
) -> Callable[[Iterable[bytes]], Iterator[tuple[int, bytes]]]:
    """Decompress with a library object that has `needs_input`, as bz2 and lzma have."""

    def decompress_pieces(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        inflater, size = make(), 0
        for piece in pieces:
            size += len(piece)
            left = piece
            while left or not inflater.needs_input:
                if inflater.eof:
                    if not left:
                        break
                    inflater = make()
                yield size, inflater.decompress(left, PIECE_BYTES)
                left = inflater.unused_data if inflater.eof else b""
        if not inflater.eof:
            raise EOFError

    return decompress_pieces


def _decompress_zstd(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    inflater, size = _zstd_inflater(), 0
    for piece in pieces:
        for at in range(0, len(piece), _ZSTD_BYTES):
            left = piece[at : at + _ZSTD_BYTES]
            size += len(left)
            while left:
                if inflater.eof:
                    inflater = _zstd_inflater()
                yield size, inflater.decompress(left)
                left = inflater.unused_data
    if not inflater.eof:
        raise EOFError


def _zstd_inflater() -> "zstandard.ZstdDecompressionObj":
    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES).decompressobj()


_DECOMPRESSORS: Final[dict[Kind, Callable[[Iterable[bytes]], Iterator[tuple[int, bytes]]]]] = {
    Kind.GZIP: _decompress_zlib(_GZIP_WINDOW),
    Kind.ZLIB: _decompress_zlib(zlib.MAX_WBITS),
    Kind.ZSTD: _decompress_zstd,
    Kind.BZIP2: _decompress_with(bz2.BZ2Decompressor),
    Kind.XZ: _decompress_with(partial(lzma.LZMADecompressor, memlimit=_XZ_MEMORY_BYTES)),
    Kind.BROTLI: _decompress_with(_BrotliInflater),
}
_COMPRESSORS: Final[dict[Kind, Callable[[], Any]]] = {
    Kind.GZIP: lambda: zlib.compressobj(1, zlib.DEFLATED, _GZIP_WINDOW),
    Kind.ZLIB: lambda: zlib.compressobj(1),
    Kind.ZSTD: lambda: zstandard.ZstdCompressor(level=1).compressobj(),
    Kind.BZIP2: lambda: bz2.BZ2Compressor(1),
    Kind.XZ: lambda: lzma.LZMACompressor(preset=0),
    Kind.BROTLI: lambda: brotli.Compressor(quality=_BROTLI_QUALITY),
}


SHORTEST_CHARS: Final = 32
_MARKS: Final = (
    rb"H4sI",  # gzip
    rb"KLUv[/_]",  # zstd
    rb"UEsD",  # zip
    rb"QlpoO",  # bzip2
    rb"/Td6WFoA",  # xz
    rb"eJ[wxyz]",  # zlib
    rb"eNo|eNr|eF[45]|eAE",
    rb"base64,",
)
_URL_SAFE: Final = re.compile(rb"[-_]")

Clean = Callable[[bytes], bytes | None]
"""Cleans decompressed data. None: there was no secret, or the format is unknown."""


HINT: Final = "(?:" + "|".join(mark.decode() for mark in _MARKS) + ")[A-Za-z0-9+/_%-]{8}"
"""An expression that matches wherever a text has compressed data in base64."""


_PATTERN: Final = compile_re2(
    rb"(?:" + b"|".join(_MARKS) + rb")(?:[A-Za-z0-9+/_-]|\\/|%2[bBfF])+(?:=|%3[dD]){0,2}"
)


def clean_embedded(text: bytes, clean: Clean) -> tuple[bytes, int]:
    """Clean the compressed data in a text; the text and how many pieces changed."""
    out, at, count = [], 0, 0
    for match in _PATTERN.finditer(text):
        begins, ends = match.start(), match.end()
        if text.startswith(b"base64,", begins):
            begins += len(b"base64,")
        changed = _clean(text[begins:ends], clean) if ends - begins >= SHORTEST_CHARS else None
        if changed is not None:
            out += [text[at:begins], changed]
            at, count = ends, count + 1
    return (b"".join((*out, text[at:])), count) if count else (text, 0)


def _clean(encoded: bytes, clean: Clean) -> bytes | None:
    is_url_safe = _URL_SAFE.search(encoded) is not None
    plain = encoded.replace(rb"\/", b"/")
    for escaped, char in ((b"%2b", b"+"), (b"%2f", b"/"), (b"%3d", b"=")):
        plain = plain.replace(escaped, char).replace(escaped.upper(), char)
    plain = plain.replace(b"-", b"+").replace(b"_", b"/").rstrip(b"=")
    try:
        content = base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        return None
    changed = clean(content)
    if changed is None:
        return None
    encoded = base64.b64encode(changed)
    return encoded.translate(bytes.maketrans(b"+/", b"-_")) if is_url_safe else encoded
