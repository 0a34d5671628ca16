"""Decodes a body piece by piece, by the content codings that its header names (RFC 9110, 8.4)."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

_STEP_BYTES: Final = 65_536
"""How much is decoded at once, so that a bomb is counted before it fills the memory."""
_ZSTD_STEP_BYTES: Final = 256
"""How much zstd is read at once, which has no limit of its output: 8 MiB at most."""
_ZSTD_WINDOW_BYTES: Final = 8 << 20
"""The largest window that zstd may ask for over HTTP (RFC 9659)."""
MOST_CODINGS: Final = 5
"""How many codings one body may have; each multiplies what a bomb decodes to."""
_GZIP_MEMBER: Final = b"\x1f\x8b\x08"
_ZSTD_FRAME: Final = b"\x28\xb5\x2f\xfd"
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_ALIASES: Final = {"x-gzip": "gzip", "x-compress": "compress"}
_NOT_DECODED: Final = frozenset({"aes128gcm", "compress", "dcb", "dcz", "exi", "pack200-gzip"})
"""Codings of IANA's registry that no request offers."""


class UndecodableError(ValueError):
    """A body is not in the coding that its header names; the text says why."""


def read_codings(header: str) -> tuple[str, ...]:
    """The codings of a Content-Encoding header, in the order in which they were applied.

    A token that IANA's registry does not list is left out: servers that name `UTF-8`, `aws-chunked`
    or `none` send the body as it is, and browsers take it so.
    """
    tokens = [token.strip().lower() for token in header.split(",")]
    named = [_ALIASES.get(token, token) for token in tokens]
    return tuple(name for name in named if name in _STREAMS or name in _NOT_DECODED)


def find_undecoded(header: str | None) -> str | None:
    """The coding of this Content-Encoding header that is not decoded. None: all are."""
    codings = () if header is None else read_codings(header)
    return next((coding for coding in codings if coding in _NOT_DECODED), None)


class _MemberStream:
    """Compressed streams that follow each other, as members of gzip and frames of zstd do.

    What stands behind the last one is left out, as gzip, curl's users and browsers do: many a page
    has a line break behind its compressed content.
    """

    def __init__(
        self,
        make: Callable[[bytes], Any],
        *,
        broken: type[Exception],
        mark: bytes | None = None,
    ) -> None:
        self.is_cut = False
        """Whether a stream has begun and not ended."""
        self._make = make
        self._broken = broken
        self._mark = mark
        """How a further stream begins. None: there is but one."""
        self._inner: Any = None
        """The stream under way. None: none is."""
        self._start = b""
        """Bytes that do not yet say what begins."""
        self._has_ended = False
        """Whether one stream has ended."""
        self._is_over = False

    def decode(self, piece: bytes) -> Iterator[bytes]:
        """Yield what the piece decodes to.

        Raises:
            UndecodableError: it is broken.
        """
        left = self._start + piece
        try:
            while self._inner is not None or self._begins(left):
                decoded: bytes = self._inner.decompress(left, _STEP_BYTES)
                if decoded:
                    yield decoded
                if self._inner.eof:
                    left, self._inner = self._inner.unused_data, None
                    self.is_cut, self._has_ended = False, True
                    continue
                left = self._inner.unconsumed_tail
                if not left and len(decoded) < _STEP_BYTES:
                    return
        except self._broken as problem:
            raise UndecodableError(str(problem).rpartition(": ")[2]) from problem

    def _begins(self, left: bytes) -> bool:
        """Begin the stream that these bytes start with."""
        if self._is_over:
            return False
        mark = self._mark if self._has_ended else None
        needed = 2 if mark is None else len(mark)
        self._start = b"" if len(left) >= needed else left
        if self._start or not left:
            self.is_cut = bool(left) and not self._has_ended
            return False
        if self._has_ended and (mark is None or not left.startswith(mark)):
            self._is_over = True
            return False
        self._inner, self.is_cut = self._make(left), True
        return True


class _BrotliStream:
    """A stream of brotli, whose library has an interface of its own."""

    def __init__(self) -> None:
        # Imported here: it holds memory, and few bodies need it.
        import brotli  # noqa: PLC0415

        self.is_cut = False
        self._broken = brotli.error
        self._inner = brotli.Decompressor()

    def decode(self, piece: bytes) -> Iterator[bytes]:
        """Yield what the piece decodes to.

        Raises:
            UndecodableError: it is broken, or goes on behind its end.
        """
        try:
            while decoded := self._inner.process(piece, output_buffer_limit=_STEP_BYTES):
                yield decoded
                piece = b""
            self.is_cut = not self._inner.is_finished()
        except self._broken as problem:
            raise UndecodableError("it is no stream of brotli") from problem


class _ZstdFrame:
    """A frame of zstd, with zlib's interface."""

    def __init__(self) -> None:
        import zstandard  # noqa: PLC0415 - it holds memory, and few bodies need it

        decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
        self._inner = decompressor.decompressobj()
        self.unconsumed_tail = self.unused_data = b""
        self.eof = False

    def decompress(self, data: bytes, _limit: int) -> bytes:
        """Decompress the beginning of the data."""
        decoded = self._inner.decompress(data[:_ZSTD_STEP_BYTES])
        rest = data[_ZSTD_STEP_BYTES:]
        self.eof = self._inner.eof
        self.unused_data = self._inner.unused_data + rest if self.eof else b""
        self.unconsumed_tail = b"" if self.eof else rest
        return decoded


def _gzip() -> _MemberStream:
    return _MemberStream(
        lambda _: zlib.decompressobj(_GZIP_WINDOW), broken=zlib.error, mark=_GZIP_MEMBER
    )


def _deflate() -> _MemberStream:
    return _MemberStream(_inflater, broken=zlib.error)


def _inflater(start: bytes) -> Any:
    """A decompressor for zlib's format, or for bare deflate, which some servers send instead."""
    is_zlib = start[0] & 0x0F == zlib.DEFLATED and int.from_bytes(start[:2], "big") % 31 == 0
    return zlib.decompressobj(zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)


def _zstd() -> _MemberStream:
    import zstandard  # noqa: PLC0415 - see above

    return _MemberStream(lambda _: _ZstdFrame(), broken=zstandard.ZstdError, mark=_ZSTD_FRAME)


_STREAMS: Final[dict[str, Callable[[], _MemberStream | _BrotliStream]]] = {
    "gzip": _gzip,
    "deflate": _deflate,
    "br": _BrotliStream,
    "zstd": _zstd,
}


class BodyDecoder:
    """Decodes one body."""

    def __init__(self, codings: Sequence[str]) -> None:
        self._codings = tuple(reversed(codings))
        self._streams = [_STREAMS[coding]() for coding in self._codings[:MOST_CODINGS]]

    @classmethod
    def choose(cls, header: str) -> "BodyDecoder | None":
        """The decoder for this Content-Encoding header. None: the body is taken as it is."""
        codings = read_codings(header)
        if not codings or not _NOT_DECODED.isdisjoint(codings):
            return None
        return cls(codings)

    @property
    def cut_coding(self) -> str | None:
        """The coding whose stream has not ended. None: all have, or none has begun."""
        for coding, stream in zip(self._codings, self._streams, strict=False):
            if stream.is_cut:
                return coding
        return None

    def decode(self, piece: bytes) -> Iterable[bytes]:
        """Yield what the piece decodes to, in parts of limited size.

        Raises:
            UndecodableError: it cannot be decoded.
        """
        if len(self._codings) > MOST_CODINGS:
            raise UndecodableError(f"it has {len(self._codings)} codings, more than {MOST_CODINGS}")
        decoded: Iterable[bytes] = (piece,)
        for stream in self._streams:
            decoded = _decode_all(stream, decoded)
        return decoded


def _decode_all(stream: _MemberStream | _BrotliStream, pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield from stream.decode(piece)
