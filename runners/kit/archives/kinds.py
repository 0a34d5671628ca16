"""What a member of an archive is, by how it begins."""

import codecs
from enum import Enum, auto
from typing import Final

from runners.kit.archives.unsearchable import UnsearchableFileError

START_BYTES: Final = 512
"""So much of its beginning tells a kind."""


class Kind(Enum):
    """How a secret is looked for in it."""

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
"""What no text has, and whatever is packed has soon."""
_ZLIB_STARTS: Final = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")


def kind_of(start: bytes, name: str = "") -> Kind:
    """By the first bytes; Brotli alone has no mark, and is known by its file's name.

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
    """Whether it begins like JSON, or lines of it."""
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
