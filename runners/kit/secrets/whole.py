"""Encodings that change all characters at once: base64, hexadecimal, UTF-16 and UTF-32."""

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from runners.kit.secrets.bricks import (
    BACKSLASHES,
    BETWEEN_BYTES,
    PERCENT,
    hex_digits,
    literal,
)
from runners.kit.secrets.following import Form, Part, form, part
from runners.kit.secrets.view import Kind

WIDE_CODECS: Final = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")

BETWEEN: Final = r"[\s:,\-]*(?:0x)?"
"""As openssl, hexdump and debuggers part them."""
BASE64_EDGE: Final = rf"(?:[A-Za-z0-9+/_\-]|{PERCENT}2[bBfF])"
"""A base64 character that holds bits of the secret and of its neighbour."""
BASE64_HEADS: Final = (0, 2, 3)
"""So many letters hold bits of what comes before, where that many bytes of it do not fill four."""
BASE64_CHARS: Final = {
    "+": rf"(?:{BACKSLASHES}u002[bB]|[+\-]|{PERCENT}2[bB])",
    "/": rf"(?:{BACKSLASHES}/|/|_|{PERCENT}2[fF])",
}
_HEX: Final = re.compile(rf"(?:(?:0x)?[0-9A-Fa-f]{{2}}{BETWEEN_BYTES}*)+".encode())
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_\-%\\]+")


class Coding(NamedTuple):
    """One encoding of bytes as a whole."""

    name: str
    parts: Callable[[str, tuple[bytes, ...]], Iterator[Iterable[Part]]]
    """What a secret reads in it, and what the bytes do in which that is usually written."""
    plainly: Callable[[str, bytes], Iterator[bytes]]
    """What a secret in these bytes reads then. A sign that all of it has is in all variants too."""
    has_gaps: bool = False
    """Whether a part does not tell of the rest, as where much may stand between its bytes."""

    def of(self, secret: str, written: tuple[bytes, ...]) -> Iterator[str]:
        """Expressions for it."""
        yield from (form.whole for form in self.forms(secret, written))

    def forms(self, secret: str, written: tuple[bytes, ...]) -> Iterator[Form]:
        """The same, part by part."""
        yield from (form(parts) for parts in self.parts(secret, written))


def _base64(_: str, written: tuple[bytes, ...]) -> Iterator[Iterable[Part]]:
    for encoded in written:
        yield from _base64_places(encoded)


def _base64_plainly(_: str, encoded: bytes) -> Iterator[bytes]:
    yield from (letters.encode() for letters, _ in base64_letters(encoded))


def _base64_of_utf16(secret: str, _: tuple[bytes, ...]) -> Iterator[Iterable[Part]]:
    for codec in WIDE_CODECS[:2]:
        yield from _base64_places(secret.encode(codec, "surrogatepass"))


def _base64_of_utf16_plainly(secret: str, _: bytes) -> Iterator[bytes]:
    for codec in WIDE_CODECS[:2]:
        yield from _base64_plainly(secret, secret.encode(codec, "surrogatepass"))


def _base64_places(encoded: bytes) -> Iterator[Iterable[Part]]:
    for letters, is_cut in base64_letters(encoded):
        yield (*letter_parts(letters), *[part(BASE64_EDGE)] * is_cut)


def base64_letters(encoded: bytes) -> Iterator[tuple[str, bool]]:
    """The bytes at each of the three places at which they may start among others.

    Also whether a letter follows that holds bits of what comes next.
    """
    for offset, head in enumerate(BASE64_HEADS):
        whole = base64.b64encode(b"\0" * offset + encoded).decode().rstrip("=")
        is_cut = (len(encoded) + offset) % 3 != 0
        yield whole[head : -1 if is_cut else None], is_cut


def letter_parts(letters: str) -> Iterator[Part]:
    """Letters of base64 one by one."""
    for letter in letters:
        special = BASE64_CHARS.get(letter)
        yield part(letter, letter.encode()) if special is None else part(special)


def hex_parts(encoded: bytes) -> Iterator[Part]:
    """Bytes in hexadecimal, parted or not."""
    for number, byte in enumerate(encoded):
        digits = f"{byte:02x}"
        yield part((BETWEEN if number else "") + hex_digits(digits), digits.encode())


def byte_parts(pieces: Iterable[bytes]) -> Iterator[Part]:
    """Bytes as they are."""
    yield from (part(literal(piece), piece) for piece in pieces)


def _hexadecimal(secret: str, written: tuple[bytes, ...]) -> Iterator[Iterable[Part]]:
    yield from map(hex_parts, (*written, *_unlike_ascii(secret)))


def _hexadecimal_plainly(secret: str, encoded: bytes) -> Iterator[bytes]:
    written = (encoded, *_unlike_ascii(secret))
    yield from (one.hex(*apart).encode() for one in written for apart in ((), (" ",)))


def _unlike_ascii(secret: str) -> Iterator[bytes]:
    """The secret in UTF-16, where its zeros are not the sign that they are among ASCII."""
    if not secret.isascii():
        yield from (secret.encode(codec, "surrogatepass") for codec in WIDE_CODECS[:2])


def _wide(secret: str, _: tuple[bytes, ...]) -> Iterator[Iterable[Part]]:
    for codec in WIDE_CODECS:
        yield byte_parts(char.encode(codec, "surrogatepass") for char in secret)


def _wide_plainly(secret: str, _: bytes) -> Iterator[bytes]:
    for codec in WIDE_CODECS:
        yield secret.encode(codec, "surrogatepass")


def _misread(secret: str, _: tuple[bytes, ...]) -> Iterator[Iterable[Part]]:
    for misread in _misread_plainly(secret, b""):
        yield byte_parts(misread[at : at + 1] for at in range(len(misread)))


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
