"""Encodings that change all characters at once: base64, hexadecimal, UTF-16 and UTF-32."""

import base64
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from runners.kit.secrets.bricks import (
    BACKSLASH,
    BACKSLASHES,
    BETWEEN_BYTES,
    PERCENT,
    hex_digits,
    literal,
)
from runners.kit.secrets.view import Kind

WIDE_CODECS: Final = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")

_BETWEEN: Final = r"[\s:,\-]*(?:0x)?"
"""As openssl, hexdump and debuggers part them."""
_BASE64_EDGE: Final = rf"(?:[A-Za-z0-9+/_\-]|{PERCENT}2[bBfF])"
"""A base64 character that holds bits of the secret and of its neighbour."""
_BASE64_CHARS: Final = {
    "+": rf"(?:[+\-]|{PERCENT}2[bB]|{BACKSLASHES}u002[bB])",
    "/": rf"(?:{BACKSLASH}*/|_|{PERCENT}2[fF])",
}
_HEX: Final = re.compile(rf"(?:(?:0x)?[0-9A-Fa-f]{{2}}{BETWEEN_BYTES}*)+".encode())
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_\-%\\]+")


class Coding(NamedTuple):
    """One encoding of bytes as a whole."""

    name: str
    of: Callable[[str, tuple[bytes, ...]], Iterator[str]]
    """Expressions for a secret, and for the bytes in which it is usually written."""
    plainly: Callable[[str, bytes], Iterator[bytes]]
    """What a secret in these bytes reads then. A sign that all of it has is in all variants too."""
    has_gaps: bool = False
    """Whether a part does not tell of the rest, as where much may stand between its bytes."""


def _base64(_: str, written: tuple[bytes, ...]) -> Iterator[str]:
    for encoded in written:
        yield from _base64_places(encoded)


def _base64_plainly(_: str, encoded: bytes) -> Iterator[bytes]:
    yield from (letters.encode() for letters, _ in _letters(encoded))


def _base64_of_utf16(secret: str, _: tuple[bytes, ...]) -> Iterator[str]:
    for codec in WIDE_CODECS[:2]:
        yield from _base64_places(secret.encode(codec, "surrogatepass"))


def _base64_of_utf16_plainly(secret: str, _: bytes) -> Iterator[bytes]:
    for codec in WIDE_CODECS[:2]:
        yield from _base64_plainly(secret, secret.encode(codec, "surrogatepass"))


def _base64_places(encoded: bytes) -> Iterator[str]:
    for letters, is_cut in _letters(encoded):
        yield "".join(_BASE64_CHARS.get(char, char) for char in letters) + _BASE64_EDGE * is_cut


def _letters(encoded: bytes) -> Iterator[tuple[str, bool]]:
    """The bytes at each of the three places at which they may start among others.

    Also whether a letter follows that holds bits of what comes next.
    """
    for offset, head in enumerate((0, 2, 3)):
        whole = base64.b64encode(b"\0" * offset + encoded).decode().rstrip("=")
        is_cut = (len(encoded) + offset) % 3 != 0
        yield whole[head : -1 if is_cut else None], is_cut


def _hexadecimal(_: str, written: tuple[bytes, ...]) -> Iterator[str]:
    for encoded in written:
        yield _BETWEEN.join(hex_digits(f"{byte:02x}") for byte in encoded)


def _hexadecimal_plainly(_: str, encoded: bytes) -> Iterator[bytes]:
    yield from (encoded.hex(*apart).encode() for apart in ((), (" ",)))


def _wide(secret: str, _: tuple[bytes, ...]) -> Iterator[str]:
    for codec in WIDE_CODECS:
        yield literal(secret.encode(codec, "surrogatepass"))


def _wide_plainly(secret: str, _: bytes) -> Iterator[bytes]:
    for codec in WIDE_CODECS:
        yield secret.encode(codec, "surrogatepass")


def _misread(secret: str, _: tuple[bytes, ...]) -> Iterator[str]:
    yield from map(literal, _misread_plainly(secret, b""))


def _misread_plainly(secret: str, _: bytes) -> Iterator[bytes]:
    """What a reader of UTF-8 makes of it, which loses bytes and keeps most, or one of Latin-1."""
    if not secret.isascii():
        for codec in WIDE_CODECS:
            encoded = secret.encode(codec, "surrogatepass")
            yield encoded.decode("utf-8", "replace").encode()
            yield encoded.decode("latin-1").encode()


def kind_of(covered: bytes) -> Kind:
    """What the form is written in by the look of it."""
    if _HEX.fullmatch(covered):
        return Kind.HEX
    return Kind.BASE64 if _BASE64.fullmatch(covered) else Kind.WIDE


CODINGS: tuple[Coding, ...] = (
    Coding("base64", _base64, _base64_plainly),
    Coding("base64 of UTF-16", _base64_of_utf16, _base64_of_utf16_plainly),
    Coding("hexadecimal", _hexadecimal, _hexadecimal_plainly, has_gaps=True),
    Coding("UTF-16 and UTF-32", _wide, _wide_plainly),
    Coding("UTF-16 misread", _misread, _misread_plainly, has_gaps=True),
)
