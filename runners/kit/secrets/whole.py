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


def _base64(_: str, written: tuple[bytes, ...]) -> Iterator[str]:
    for encoded in written:
        yield from _base64_places(encoded)


def _base64_of_utf16(secret: str, _: tuple[bytes, ...]) -> Iterator[str]:
    for codec in WIDE_CODECS[:2]:
        yield from _base64_places(secret.encode(codec, "surrogatepass"))


def _base64_places(encoded: bytes) -> Iterator[str]:
    """The bytes at each of the three places at which they may start among others."""
    for offset, head in enumerate((0, 2, 3)):
        whole = base64.b64encode(b"\0" * offset + encoded).decode().rstrip("=")
        cut = (len(encoded) + offset) % 3 != 0
        core = whole[head : -1 if cut else None]
        yield "".join(_BASE64_CHARS.get(char, char) for char in core) + _BASE64_EDGE * cut


def _hexadecimal(_: str, written: tuple[bytes, ...]) -> Iterator[str]:
    for encoded in written:
        yield _BETWEEN.join(hex_digits(f"{byte:02x}") for byte in encoded)


def _wide(secret: str, _: tuple[bytes, ...]) -> Iterator[str]:
    for codec in WIDE_CODECS:
        yield literal(secret.encode(codec, "surrogatepass"))


def _misread(secret: str, _: tuple[bytes, ...]) -> Iterator[str]:
    """What a reader of UTF-8 makes of it, which loses bytes and keeps most, or one of Latin-1."""
    if not secret.isascii():
        for codec in WIDE_CODECS:
            encoded = secret.encode(codec, "surrogatepass")
            yield literal(encoded.decode("utf-8", "replace").encode())
            yield literal(encoded.decode("latin-1").encode())


def kind_of(covered: bytes) -> Kind:
    """What the form is written in by the look of it."""
    if _HEX.fullmatch(covered):
        return Kind.HEX
    return Kind.BASE64 if _BASE64.fullmatch(covered) else Kind.WIDE


CODINGS: tuple[Coding, ...] = (
    Coding("base64", _base64),
    Coding("base64 of UTF-16", _base64_of_utf16),
    Coding("hexadecimal", _hexadecimal),
    Coding("UTF-16 and UTF-32", _wide),
    Coding("UTF-16 misread", _misread),
)
