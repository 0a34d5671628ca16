"""Which bytes of a text secrets cover, and what is shown in their place."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from runners.kit.secrets.view import Kind

_CUT_ESCAPE: Final = re.compile(
    rb"(?:\\+(?:u[0-9A-Fa-f]{0,3}|x[0-9A-Fa-f]?)|%(?:25)*[0-9A-Fa-f]?)\Z"
)
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_LONGEST_ESCAPE_BYTES: Final = 64
_ONE_LETTER: Final = re.compile(
    rb"%(?:25)*[0-9A-Fa-f]{2}|\\+(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[0-7]{3})|&#[0-9A-Fa-fxX]+;"
)
_OWN_QUOTE: Final = re.compile(rb'(?<!\\)(?:\\\\)*"')
_LETTER: Final = re.compile(rb"[A-Za-z0-9+/_\-]")
_BASE64_STARS: Final = b"Kioq" * 4
_HEX_STARS: Final = b"2a" * 12


class Cover(NamedTuple):
    """A stretch of bytes that carry a secret."""

    start: int
    end: int
    kind: Kind


def united(covers: Iterable[Cover]) -> list[Cover]:
    """Those that overlap made one; in order."""
    found: list[Cover] = []
    for cover in sorted(covers):
        if found and cover.start < found[-1].end:
            last = found[-1]
            found[-1] = Cover(last.start, max(last.end, cover.end), max(last.kind, cover.kind))
        else:
            found.append(cover)
    return found


def fitted(text: bytes, cover: Cover) -> Cover:
    """The cover as it can be replaced without breaking an escape at either end."""
    return _without_quote_escape(text, without_cut_escape(text, cover))


def without_cut_escape(text: bytes, cover: Cover) -> Cover:
    r"""The cover with the whole of an escape that it begins in: half of `\u0041` breaks JSON."""
    slashes = _slashes_before(text, cover.start)
    if slashes and (slashes % 2 or text[cover.start] == ord("\\")):
        # One that stands alone escapes the first byte; a run belongs to the escape that it begins.
        taken = slashes if text[cover.start] == ord("\\") else 1
        return cover._replace(start=cover.start - taken)
    escape = _CUT_ESCAPE.search(text[max(0, cover.start - _LONGEST_ESCAPE_BYTES) : cover.start])
    if escape is None or text[cover.start] not in _HEX:
        return cover
    return cover._replace(start=cover.start - len(escape.group()))


def _without_quote_escape(text: bytes, cover: Cover) -> Cover:
    r"""The cover without the backslash of a quote behind it: `\"` alone would end JSON's text."""
    if text[cover.end - 1 : cover.end + 1] != b'\\"' or not _slashes_before(text, cover.end) % 2:
        return cover
    return cover._replace(end=cover.end - 1)


def _slashes_before(text: bytes, at: int) -> int:
    """How long the run of backslashes is that ends there."""
    looked = _LONGEST_ESCAPE_BYTES
    while True:
        before = text[max(0, at - looked) : at]
        slashes = len(before) - len(before.rstrip(b"\\"))
        if slashes < looked:
            return slashes
        looked *= 2


def replacement(covered: bytes, kind: Kind, *, shown: bytes) -> bytes:
    """What is shown instead: something that whoever decodes the text can still decode."""
    match kind:
        case Kind.TEXT:
            return _quoted(covered, shown) if b'"' in covered else shown
        case Kind.WIDE:
            # Zeros that are written as escapes stand in a text, which holds none.
            return _wide(covered, shown) if b"\0" in covered else shown
        case Kind.HEX:
            return _HEX_STARS[: 18 + 2 * (_letters(covered) % 2)]
        case Kind.BASE64:
            return _BASE64_STARS[: 12 + _letters(covered) % 4]


def _quoted(covered: bytes, shown: bytes) -> bytes:
    r"""With JSON's own quotes that were covered: those of a text have odd runs of backslashes."""
    quotes = [found.end() - 1 for found in _OWN_QUOTE.finditer(covered)]
    if not quotes:
        return shown
    is_value = covered[:1] in (b"{", b"[") and covered[-1:] in (b"}", b"]")
    before = b'"' if is_value or quotes[0] == 0 else b""
    after = b'"' if is_value or quotes[-1] == len(covered) - 1 else b""
    return before + shown + after


def _letters(covered: bytes) -> int:
    """How many letters of base64: their number decides where the rest is cut into bytes."""
    return len(_LETTER.findall(_ONE_LETTER.sub(b"+", covered)))


def _wide(covered: bytes, shown: bytes) -> bytes:
    """The text in the width of what it replaces, beginning and ending in the same byte of it."""
    width = 4 if b"\0\0" in covered else 2
    first, rest = len(covered) - len(covered.lstrip(b"\0")), len(covered) % width
    wide = b"".join(b"\0" * (width - 1) + bytes([byte]) for byte in shown)
    wide = wide[width - 1 - first % width :]
    return wide + b"\0" * ((rest - len(wide)) % width)
