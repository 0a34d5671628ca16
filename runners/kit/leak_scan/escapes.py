"""Undo one layer of everything that encodes character by character. Pure.

Percent signs, HTML entities, backslashes of JavaScript, JSON and Python, and the colour codes of
terminals are undone in one pass, whatever they stand beside; nested ones take one pass a layer.
"""

import html
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import re2


def _latin() -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return options


_TOKEN: Final = re.compile(
    rb"(%[0-9A-Fa-f]{2}|%u[dD][89abAB][0-9A-Fa-f]{2}%u[dD][c-fC-F][0-9A-Fa-f]{2}|%u[0-9A-Fa-f]{4}"
    rb"|\\(?:[uU][dD][89abAB][0-9A-Fa-f]{2}\\[uU][dD][c-fC-F][0-9A-Fa-f]{2}"
    rb"|u\{0{0,16}[0-9A-Fa-f]{1,6}\}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}"
    rb"|N\{[A-Za-z0-9 \-]{2,80}\}|[0-7]{1,3}|\r?\n|[^\r])"
    rb"|&(?:\#0{0,16}[0-9]{1,7};?|\#[xX]0{0,16}[0-9A-Fa-f]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};)"
    rb"|\x1b\[[0-9;:?]{0,32}[A-Za-z])"
)
"""One group, so that what splits by it has text and tokens in turns."""
_STARTS: Final = (b"%", b"\\", b"&", b"\x1b")
_SHORT: Final = {
    ord("n"): b"\n", ord("r"): b"\r", ord("t"): b"\t", ord("b"): b"\b", ord("f"): b"\f",
    ord("v"): b"\v", ord("a"): b"\a",
}  # fmt: skip
_QUOTED: Final = re.compile(rb"=(?:[0-9A-Fa-f]{2}|[ \t]{0,64}\r?\n)")
_QUOTED_SIGN: Final = re2.compile(
    rb"=(?:00|09|0[AaDd]|1[Bb]|2[0-9A-Fa-f]|3[A-Fa-f]|40|5[B-Fb-f]|60|7[B-Fb-f]|[89A-Fa-f][0-9A-Fa-f]"
    rb"|[ \t]{0,64}\r?\n|46rom|[0-9A-Fa-f]{2}=[0-9A-Fa-f]{2})",
    _latin(),
)
"""A lone letter or digit is quoted by nobody, but for the F of `From` that begins a line."""
_QUOTED_BYTES: Final = {f"={byte:02x}".encode(): bytes((byte,)) for byte in range(256)}
_READ_WRONGLY: Final = re.compile(rb"(?:[\xc2\xc3][\x80-\xbf]){2,}")
_IS_READ_WRONGLY: Final = re2.compile(rb"(?:[\xc2\xc3][\x80-\xbf]){2}", _latin())
"""Most texts are not, which RE2 tells ten times as fast."""
_LAST_POINT: Final = 0x10FFFF


def unescaped(text: bytes) -> bytes:
    """The text without its outermost layer of escapes."""
    if not any(start in text for start in _STARTS):
        return text
    parts = _TOKEN.split(text)
    parts[1::2] = map(_read, parts[1::2])
    return b"".join(parts)


def reread(text: bytes) -> bytes:
    """The text with `Ã¶` for `ö` mended: UTF-8 that was read as Latin-1 and written anew."""
    if text.isascii() or _IS_READ_WRONGLY.search(text) is None:
        return text
    return _READ_WRONGLY.sub(_read_rightly, text)


def _read_rightly(found: re.Match[bytes]) -> bytes:
    bare = found[0].decode().encode("latin-1")
    try:
        bare.decode()
    except UnicodeDecodeError:
        return found[0]
    return bare


def unquoted_printable(text: bytes, *, reach_bytes: int) -> bytes:
    """What is quoted-printable in a text, decoded, with so much before and after it.

    Texts hold what only looks so, as `?page=12`; the rest of them need no second look.
    """
    spans = _spans(text, reach_bytes)
    return b"\n\x01\n".join(_QUOTED.sub(_quoted_byte, text[slice(*span)]) for span in spans)


def _spans(text: bytes, reach_bytes: int) -> list[tuple[int, int]]:
    """Where there is something quoted, with what is around it; spans that meet are one."""
    spans: list[tuple[int, int]] = []
    for found in _QUOTED_SIGN.finditer(text):
        start, end = max(0, found.start() - reach_bytes), found.end() + reach_bytes
        if spans and start <= spans[-1][1]:
            start = spans.pop()[0]
        spans.append((start, end))
    return spans


def _quoted_byte(found: re.Match[bytes]) -> bytes:
    return _QUOTED_BYTES.get(found[0].lower(), b"")


@lru_cache(maxsize=16384)
def _read(token: bytes) -> bytes:
    match token[0]:
        case 0x25 if token.startswith(b"%u"):
            units = bytes.fromhex(token.replace(b"%u", b"").decode())
            return units.decode("utf-16-be", "replace").encode()
        case 0x25:
            return bytes((int(token[1:], 16),))
        case 0x26:
            return html.unescape(token.decode("ascii")).encode("utf-8", "replace")
        case 0x1B:
            return b""
        case _:
            return _read_backslash(token)


def _read_backslash(token: bytes) -> bytes:
    sort, rest = token[1], token[2:]
    if sort in _NUMBERED and rest:
        return _NUMBERED[sort](rest)
    if 0x30 <= sort <= 0x37:
        return _point(int(token[1:], 8))
    if sort in b"\r\n":
        return b""
    return _SHORT.get(sort, token[1:])


def _units(rest: bytes) -> bytes:
    r"""Of `\u`: one code unit, a pair of them, or a code point in braces."""
    if b"\\" in rest:
        pair = bytes.fromhex((rest[:4] + rest[6:]).decode())
        return pair.decode("utf-16-be", "replace").encode()
    return _point(int(rest.strip(b"{}"), 16))


def _named(rest: bytes) -> bytes:
    try:
        return unicodedata.lookup(rest.strip(b"{}").decode()).encode()
    except KeyError:
        return rest


def _hexadecimal(rest: bytes) -> bytes:
    return _point(int(rest, 16))


_NUMBERED: Final[dict[int, Callable[[bytes], bytes]]] = {
    ord("u"): _units, ord("U"): _units, ord("x"): _hexadecimal, ord("N"): _named,
}  # fmt: skip


def _point(number: int) -> bytes:
    return chr(min(number, _LAST_POINT)).encode("utf-8", "surrogatepass")
