"""Read base64, hexadecimal and wide characters, at every place at which they may begin."""

import binascii
import re
from collections.abc import Iterator, Sequence
from typing import Final

from runners.kit.secrets.bricks import BACKSLASHES, BETWEEN_BYTES, LINE_END, PERCENT
from runners.kit.secrets.compiled import apart, compiled_once, found_in
from runners.kit.secrets.view import Kind, View

_ANY: Final = rf"(?:[A-Za-z0-9+/_\-]|{PERCENT}2[bBfF]|{BACKSLASHES}(?:/|u002[bBfF]))"
_PRINTABLE: Final = rf"[I-Za-f][C-HS-Xi-nyz0-3][ABEFIJMNQRUVYZcdghklopstwx014589]{_ANY}"
_WIDE: Final = rf"[I-Za-f][AQgw][AB]{_ANY}"
_WIDE_AFTER: Final = "A[C-H][AEIMQUYcgkosw048]A"
_LINE: Final = "[A-Za-z0-9+/]"

BASE64_SIGN: Final = (
    f"(?:{_PRINTABLE}){{3}}"
    f"|(?:{_WIDE}{_WIDE_AFTER}){{2}}"
    rf"|{_LINE}{{60}}{LINE_END}[ \t]*{_LINE}"
)
"""Base64 of printable text in UTF-8 or UTF-16; a full line of any. Words do not look like it."""
_PRINTABLE_HEX: Final = "[2-7][0-9A-Fa-f]"
_PERCENT_BETWEEN: Final = rf"{PERCENT}(?:20|2[bBcC]|3[aA]|0[aAdD])"
HEX_SIGN: Final = (
    f"(?:{_PRINTABLE_HEX}(?:{BETWEEN_BYTES}|0x)*){{9}}{_PRINTABLE_HEX}"
    f"|(?:{_PRINTABLE_HEX}{BETWEEN_BYTES}+(?:0x)?){{7}}"
    f"|(?:{_PRINTABLE_HEX}{BETWEEN_BYTES}*00{BETWEEN_BYTES}*){{4}}"
    f"|(?:[0-9A-Fa-f]{{2}}{_PERCENT_BETWEEN}){{4}}"
)
WIDE_SIGN: Final = r"(?:[^\x00]\x00+){6}"

_BASE64_RUN: Final = re.compile(
    rb"(?:[A-Za-z0-9+/_\-]+|%(?:25)*2[bBfF]|\\{1,32}(?:/|u002[bBfF])"
    rb"|=?(?:\r?\n|(?:%(?:25)*0[dD])?%(?:25)*0[aA]|(?:\\{1,32}r)?\\{1,32}n)[ \t]*)+"
)
_STOPS: Final = (b'"', b"<", b">", b":", b",", b".", b";", b"(", b")", b"'")
"""No run goes on over one of them."""
_PLAIN_RUN: Final = re.compile(rb"[A-Za-z0-9+/_\-]+")
_SEXTET: Final = re.compile(
    rb"=?(?:\r?\n|(?:%(?:25)*0[dD])?%(?:25)*0[aA]|(?:\\+r)?\\+n)[ \t]*|([A-Za-z0-9])"
    rb"|([+\-]|%(?:25)*2[bB]|\\+u002[bB])|([/_]|%(?:25)*2[fF]|\\+(?:/|u002[fF]))"
)
_HEX_RUN: Final = re.compile(
    rf"(?:(?:0x)?[0-9A-Fa-f]{{2}}{BETWEEN_BYTES}*){{8,}}[0-9A-Fa-f]?".encode()
)
_HEX_DIGIT: Final = re.compile(rf"0x|{BETWEEN_BYTES}|([0-9A-Fa-f])".encode())
_PLAIN_HEX: Final = re.compile(rb"[0-9A-Fa-f]+")
_WIDE_RUN: Final = re.compile(rb"(?:[^\0]\0{1,3}){4,}[^\0]?")


def unbase64(stretch: bytes) -> Iterator[View]:
    """Each run that looks like base64 at its four places."""
    for run in _signed_runs(stretch):
        letters, starts, ends = _letters(run.group(), run.start())
        for skipped in range(4):
            sextets = _Sextets(starts, ends, skipped)
            yield View(_decoded(letters[skipped:]), sextets.place, Kind.BASE64)


def _signed_runs(stretch: bytes) -> Iterator[re.Match[bytes]]:
    """Runs with a sign; the others, which are all words of a text, are not even looked at."""
    over = 0
    (sign,) = compiled_once(BASE64_SIGN)
    for start, _ in apart(sign, stretch):
        if start < over:
            continue
        begins = max(over, 1 + max(stretch.rfind(stop, over, start) for stop in _STOPS))
        for run in _BASE64_RUN.finditer(stretch, begins):
            over = run.end()
            if over > start:
                if found_in(BASE64_SIGN, run.group()):
                    yield run
                break


def _letters(run: bytes, at: int) -> tuple[bytes, Sequence[int], Sequence[int]]:
    """The letters of a run, and where each begins and ends."""
    if _PLAIN_RUN.fullmatch(run):
        letters = run.replace(b"-", b"+").replace(b"_", b"/")
        return letters, range(at, at + len(run)), range(at + 1, at + len(run) + 1)
    sextets = [found for found in _SEXTET.finditer(run) if found.lastindex is not None]
    letters = b"".join((found.group(), b"+", b"/")[(found.lastindex or 1) - 1] for found in sextets)
    return (
        letters,
        [at + found.start() for found in sextets],
        [at + found.end() for found in sextets],
    )


def _decoded(letters: bytes) -> bytes:
    """What the letters hold, up to the last whole byte."""
    padded = letters + b"A" * (-len(letters) % 4)
    return binascii.a2b_base64(padded)[: len(letters) * 6 // 8]


class _Sextets:
    """Where the letters of a byte stand: it begins in one and ends in the next."""

    def __init__(self, starts: Sequence[int], ends: Sequence[int], skipped: int) -> None:
        self._starts = starts
        self._ends = ends
        self._skipped = skipped

    def place(self, first: int, last: int) -> tuple[int, int]:
        return self._starts[self._letter(first)], self._ends[self._letter(last) + 1]

    def _letter(self, byte: int) -> int:
        return self._skipped + byte // 3 * 4 + byte % 3


def unhex(stretch: bytes) -> Iterator[View]:
    """Each run of hexadecimal digits, in both ways of pairing them."""
    for run in _HEX_RUN.finditer(stretch):
        digits, starts = _digits(run.group(), run.start())
        for skipped in (0, 1):
            even = len(digits) - (len(digits) - skipped) % 2
            content = binascii.a2b_hex(digits[skipped:even])
            yield View(content, _Pairs(starts, skipped).place, Kind.HEX)


def _digits(run: bytes, at: int) -> tuple[bytes, Sequence[int]]:
    """The digits of a run, and where each stands; most runs are hashes, and nothing else."""
    if _PLAIN_HEX.fullmatch(run):
        return run, range(at, at + len(run))
    found = [digit for digit in _HEX_DIGIT.finditer(run) if digit.lastindex]
    return b"".join(digit.group() for digit in found), [at + digit.start() for digit in found]


class _Pairs:
    """Where the two digits of a byte stand."""

    def __init__(self, starts: Sequence[int], skipped: int) -> None:
        self._starts = starts
        self._skipped = skipped

    def place(self, first: int, last: int) -> tuple[int, int]:
        at = self._skipped
        return self._starts[at + 2 * first], self._starts[at + 2 * last + 1] + 1


def narrowed(stretch: bytes) -> Iterator[View]:
    """Characters of two or four bytes as one byte each."""
    for run in _WIDE_RUN.finditer(stretch):
        text = run.group()
        starts = [run.start() + at for at, byte in enumerate(text) if byte]
        yield View(text.replace(b"\0", b""), _Singles(starts).place, Kind.WIDE)


class _Singles:
    """Where the byte of a wide character stands that is not zero."""

    def __init__(self, starts: Sequence[int]) -> None:
        self._starts = starts

    def place(self, first: int, last: int) -> tuple[int, int]:
        return self._starts[first], self._starts[last] + 1
