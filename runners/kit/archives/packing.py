"""Data that is compressed as a whole: unpacked and packed again in pieces of bounded size."""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

import brotli
import zstandard

from runners.kit.archives.bounds import Budget
from runners.kit.archives.kinds import Kind
from runners.kit.archives.unsearchable import UnsearchableFileError

PIECE_BYTES: Final = 1 << 20
_GZIP_WINDOW: Final = 31
_BROTLI_QUALITY: Final = 4
_ZSTD_WINDOW_BYTES: Final = 32 << 20
_XZ_MEMORY_BYTES: Final = 80 << 20
"""As much as its highest preset takes."""
_ZSTD_BYTES: Final = 256
"""So much is unpacked at a time, to 8 MiB at most: there is no other bound to what comes out."""
_BROKEN: Final = (
    zlib.error,
    lzma.LZMAError,
    zstandard.ZstdError,
    brotli.error,
    OSError,
    EOFError,
    ValueError,
)
"""What the libraries say of data that are not what they began like."""


class _BrotliInflater:
    """Brotli with the face of the others."""

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


def unpacked(kind: Kind, pieces: Iterable[bytes], budget: Budget) -> Iterator[bytes]:
    """What was packed; several packed streams one after the other count as one.

    Raises:
        UnsearchableFileError: it is broken, or too long.
    """
    packed_bytes = unpacked_bytes = 0
    try:
        for packed, piece in _OPENED[kind](pieces):
            packed_bytes, unpacked_bytes = packed, unpacked_bytes + len(piece)
            budget.spend(len(piece))
            budget.check_ratio(packed_bytes, unpacked_bytes)
            yield piece
    except _BROKEN as problem:
        raise UnsearchableFileError(f"it is broken {kind.name.lower()} data") from problem


def packed(kind: Kind, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces, packed in the same way again."""
    packer = _PACKERS[kind]()
    work = packer.process if kind is Kind.BROTLI else packer.compress
    for piece in pieces:
        yield work(piece)
    yield packer.finish() if kind is Kind.BROTLI else packer.flush()


def _of_zlib(window: int) -> Callable[[Iterable[bytes]], Iterator[tuple[int, bytes]]]:
    def opened(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
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

    return opened


def _of(make: Callable[[], Any]) -> Callable[[Iterable[bytes]], Iterator[tuple[int, bytes]]]:
    """Of those that tell by `needs_input` when they want more."""

    def opened(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
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

    return opened


def _of_zstd(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
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


_OPENED: Final[dict[Kind, Callable[[Iterable[bytes]], Iterator[tuple[int, bytes]]]]] = {
    Kind.GZIP: _of_zlib(_GZIP_WINDOW),
    Kind.ZLIB: _of_zlib(zlib.MAX_WBITS),
    Kind.ZSTD: _of_zstd,
    Kind.BZIP2: _of(bz2.BZ2Decompressor),
    Kind.XZ: _of(partial(lzma.LZMADecompressor, memlimit=_XZ_MEMORY_BYTES)),
    Kind.BROTLI: _of(_BrotliInflater),
}
_PACKERS: Final[dict[Kind, Callable[[], Any]]] = {
    Kind.GZIP: lambda: zlib.compressobj(1, zlib.DEFLATED, _GZIP_WINDOW),
    Kind.ZLIB: lambda: zlib.compressobj(1),
    Kind.ZSTD: lambda: zstandard.ZstdCompressor(level=1).compressobj(),
    Kind.BZIP2: lambda: bz2.BZ2Compressor(1),
    Kind.XZ: lambda: lzma.LZMACompressor(preset=0),
    Kind.BROTLI: lambda: brotli.Compressor(quality=_BROTLI_QUALITY),
}
