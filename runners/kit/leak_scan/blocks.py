"""Undo what encodes bytes by the block: base64 at any alignment, hexadecimal, lists of numbers.

Text is full of what could be such a run and is none. All runs are decoded together, and of what
comes out only that is kept in which a secret could stand.
"""

import binascii
import codecs
import re
from collections.abc import Iterator
from itertools import chain
from typing import Final, Protocol

import re2

from runners.kit.leak_scan.needles import SHORT_BYTES, Needles

_STANDARD: Final = bytes.maketrans(b"-_", b"+/")
_PADS: Final = (b"", b"AAA", b"AA", b"A")
_GAP: Final = b"AAAA"
_INDENTED: Final = re.compile(rb"\n[ \t]{1,64}")
_NUMBERS: Final = rb"(?:[0-9]{1,3}[ \t\r\n]*,[ \t\r\n]*)+[0-9]{1,3}"
_APART: Final = b"\n\x01\n"
_ALONE_CHARS: Final = 8
_PACKED_STARTS: Final = (
    b"H4sI", b"KLUv", b"UEsDB", b"Qlpo", b"/Td6WF", b"eJ", b"eN", b"eA", b"eF",
)  # fmt: skip
"""How gzip, zstd, zip, bzip2, xz and zlib begin in base64."""
_ANYWHERE: Final = 5
"""So many of these marks are long enough to be looked for within a run."""
_MOST_REPEATS: Final = 1000
"""RE2 counts no further."""
_LEAST_PACKED_CHARS: Final = 24
_SPACES_FOR_OTHERS: Final = bytes(
    byte if byte in b"0123456789abcdefABCDEF" else 0x20 for byte in range(256)
)
"""Leaves hexadecimal digits as they are."""


class _Found(Protocol):
    def span(self) -> tuple[int, int]: ...


class _Compiled(Protocol):
    def finditer(self, text: bytes, /) -> Iterator[_Found]: ...

    def search(self, text: bytes, /) -> object | None: ...


class Blocks:
    """Decodes the runs of a text in which these needles could be."""

    def __init__(self, needles: Needles) -> None:
        self._needles = needles
        least = min(max(needles.shortest_bytes, SHORT_BYTES), _MOST_REPEATS // 2)
        chars = least * 4 // 3
        self._runs = _pattern(rb"[A-Za-z0-9+/_\-]{%d,}" % chars)
        self._alone = _pattern(rb"[A-Za-z0-9+/_\-]{5,}")
        self._least_pairs = 2 * least
        self._numbers = _pattern(_NUMBERS)
        self._least_numbers = least
        kept = b"".join(rb"\x%02x" % byte for byte in needles.letters())
        # Shorter ones come about by chance, and so does printable text around them rarely.
        room = _ALONE_CHARS if needles.has_short else least
        self._readable = _pattern(rb"[\t\n\r\x00\x1b-\x7e%s]{%d,}" % (kept, room))
        self._unreadable = _pattern(rb"[^\t\n\r\x00\x1b-\x7e%s]" % kept)

    def readable(self, content: bytes) -> bytes:
        """What is left without bytes that no encoded secret has; runs are kept apart."""
        if self._unreadable.search(content) is None:
            return content
        if self._needles.has_short and _is_utf8(content):
            return content
        return _APART.join(_all(self._readable, content))

    def runs(self, text: bytes) -> list[bytes]:
        """What could be base64, lines put together; each once."""
        found = _all(self._runs, _unfolded(text))
        return [run.translate(_STANDARD) for run in dict.fromkeys(found)]

    def decoded(self, text: bytes, runs: list[bytes]) -> bytes:
        """All that runs and numbers of a text may mean, as far as a secret could be in it."""
        pieces = [_decoded_at(runs, start) for start in range(4)] if runs else []
        pieces.append(self._hexadecimal(runs))
        pieces.append(self._listed(text))
        found = (_all(self._readable, piece) for piece in pieces if piece)
        return _APART.join(chain.from_iterable(found))

    def packed(self, runs: list[bytes]) -> Iterator[bytes]:
        """What runs mean that begin like something compressed."""
        if _PACKED_SIGN.search(b"\n" + b"\n".join(runs)) is None:
            return
        for run in runs:
            if len(run) >= _LEAST_PACKED_CHARS and (start := _packed_at(run)) >= 0:
                yield _whole(run[start:])

    def hold_alone(self, text: bytes) -> bool:
        """Whether a short run is nothing but a short secret; longer runs are decoded anyway."""
        if not self._needles.has_short:
            return False
        runs = set(_all(self._alone, text))
        return any(
            self._needles.hold(_whole(run.translate(_STANDARD)))
            for run in runs
            if len(run) <= _ALONE_CHARS
        )

    def _hexadecimal(self, found: list[bytes]) -> bytes:
        """Its digits are letters of base64 too, so they lie in runs."""
        long = b" ".join(run for run in found if len(run) >= self._least_pairs)
        pairs = long.translate(_SPACES_FOR_OTHERS).split()
        runs = dict.fromkeys(run for run in pairs if len(run) >= self._least_pairs)
        even = (
            run[start : start + (len(run) - start) // 2 * 2] for run in runs for start in (0, 1)
        )
        return b"\x01".join(map(binascii.unhexlify, even))

    def _listed(self, text: bytes) -> bytes:
        found = (run.split(b",") for run in _all(self._numbers, text))
        long = (run for run in found if len(run) >= self._least_numbers)
        return b"\x01".join(bytes(min(int(one), 255) for one in run) for run in long)


def _all(pattern: _Compiled, text: bytes) -> list[bytes]:
    return [text[slice(*found.span())] for found in pattern.finditer(text)]


def _is_utf8(content: bytes) -> bool:
    """Whether it is text, which may be cut within a character at both ends."""
    start = next((at for at in range(min(4, len(content))) if content[at] & 0xC0 != 0x80), 0)
    try:
        codecs.utf_8_decode(content[start:], "strict", False)  # noqa: FBT003 - of the library
    except UnicodeDecodeError:
        return False
    return True


def _decoded_at(runs: list[bytes], start: int) -> bytes:
    """Every run from that character on, zeros between them."""
    padded = (run[start:] + _PADS[(len(run) - start) % 4] for run in runs)
    return binascii.a2b_base64(_GAP.join(padded))


def _whole(run: bytes) -> bytes:
    run = run[: len(run) - (len(run) % 4 == 1)]
    return binascii.a2b_base64(run + b"=" * (-len(run) % 4))


def _packed_at(run: bytes) -> int:
    """Where something compressed begins. -1: nowhere."""
    places = [run.find(start) for start in _PACKED_STARTS[:_ANYWHERE]]
    places += [0] if run.startswith(_PACKED_STARTS) else []
    return min((place for place in places if place >= 0), default=-1)


def _unfolded(text: bytes) -> bytes:
    if b"\n " in text or b"\n\t" in text:
        text = _INDENTED.sub(b"", text)
    return text.translate(None, b"\r\n")


def _pattern(source: bytes) -> _Compiled:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    compiled: _Compiled = re2.compile(source, options)
    return compiled


_PACKED_SIGN: Final = _pattern(
    b"|".join((*_PACKED_STARTS[:_ANYWHERE], *(rb"\n" + start for start in _PACKED_STARTS)))
)
"""Is in runs, each in a line of its own, of which one begins like something compressed."""
