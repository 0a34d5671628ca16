"""Decodes what may hide a secret: encoded blocks, typed keys, layers of both.

Blocks are base64 at any alignment, hexadecimal and lists of numbers. Texts are full of runs that
only look encoded, so all are decoded together, and only output that could have a secret is kept.
"""

import binascii
import codecs
import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from redaction.clean import ScanLimits
from redaction.scanner.needles import (
    SHORT_BYTES,
    Needles,
    compile_re2,
    decode_quoted_printable,
    remove_escapes,
)

_STANDARD: Final = bytes.maketrans(b"-_", b"+/")
_PADS: Final = (b"", b"AAA", b"AA", b"A")
_GAP: Final = b"AAAA"
_INDENTED: Final = re.compile(rb"\n[ \t]{1,64}")
_NUMBERS: Final = rb"(?:[0-9]{1,3}[ \t\r\n]*,[ \t\r\n]*)+[0-9]{1,3}"
_CHARACTERS: Final = (
    rb"(?:['\"`](?:[^\x00-\x1f\x80-\xff]|[\xc0-\xff][\x80-\xbf]+)['\"`][ \t\r\n]*,?[ \t\r\n]*)"
)
_APART: Final = b"\n\x01\n"
_ALONE_CHARS: Final = 8
_PACKED_STARTS: Final = (
    b"H4sI", b"KLUv", b"UEsDB", b"Qlpo", b"/Td6WF", b"eJ", b"eN", b"eA", b"eF",
)  # fmt: skip
"""The first letters of gzip, zstd, zip, bzip2, xz and zlib in base64."""
_ANYWHERE: Final = 5
"""How many of these marks, the first ones, are long enough to search for within a run."""
_MOST_REPEATS: Final = 1000
"""RE2's limit for a counted repeat."""
_LEAST_PACKED_CHARS: Final = 24
_SPACES_FOR_OTHERS: Final = bytes(
    byte if byte in b"0123456789abcdefABCDEF" else 0x20 for byte in range(256)
)
"""Translates everything but hexadecimal digits to spaces."""


class Blocks:
    """Decodes the runs of a text that could have one of the needles."""

    def __init__(self, needles: Needles) -> None:
        self._needles = needles
        least = min(max(needles.shortest_bytes, SHORT_BYTES), _MOST_REPEATS // 2)
        chars = least * 4 // 3
        self._runs = compile_re2(rb"[A-Za-z0-9+/_\-]{%d,}" % chars)
        self._alone = compile_re2(rb"[A-Za-z0-9+/_\-]{5,}")
        self._least_pairs = 2 * least
        self._numbers = compile_re2(_NUMBERS)
        self._least_numbers = least
        self._characters = compile_re2(_CHARACTERS + rb"{4,}")
        self._character = compile_re2(_CHARACTERS)
        kept = b"".join(rb"\x%02x" % byte for byte in needles.letters())
        # Shorter ones come about by chance, and so does printable text around them rarely.
        room = _ALONE_CHARS if needles.has_short else least
        self._readable = compile_re2(rb"[\t\n\r\x00\x1b-\x7e%s]{%d,}" % (kept, room))
        self._unreadable = compile_re2(rb"[^\t\n\r\x00\x1b-\x7e%s]" % kept)

    def filter_readable(self, content: bytes) -> bytes:
        """Keep the runs of bytes that an encoded secret may have, with separators between them."""
        if self._unreadable.search(content) is None:
            return content
        if self._needles.has_short and _is_utf8(content):
            return content
        return _APART.join(_all(self._readable, content))

    def runs(self, text: bytes) -> list[bytes]:
        """Find distinct runs that could be base64, across line breaks."""
        found = _all(self._runs, _unfold(text))
        return [run.translate(_STANDARD) for run in dict.fromkeys(found)]

    def decode(self, text: bytes, runs: list[bytes]) -> bytes:
        """Decode runs and lists of numbers; keep what could have a secret."""
        pieces = [_decoded_at(runs, start) for start in range(4)] if runs else []
        pieces.append(self._decode_hex(runs))
        pieces.append(self._decode_numbers(text))
        pieces.append(self._decode_characters(text))
        found = (_all(self._readable, piece) for piece in pieces if piece)
        return _APART.join(chain.from_iterable(found))

    def find_compressed(self, runs: list[bytes]) -> Iterator[bytes]:
        """Decode the runs that begin like compressed data."""
        if _PACKED_SIGN.search(b"\n" + b"\n".join(runs)) is None:
            return
        for run in runs:
            if len(run) >= _LEAST_PACKED_CHARS and (start := _packed_at(run)) >= 0:
                yield _whole(run[start:])

    def hold_alone(self, text: bytes) -> bool:
        """Whether a short run is exactly a short secret; longer runs are decoded anyway."""
        if not self._needles.has_short:
            return False
        runs = set(_all(self._alone, text))
        return any(
            self._needles.hold(_whole(run.translate(_STANDARD)))
            for run in runs
            if len(run) <= _ALONE_CHARS
        )

    def _decode_hex(self, found: list[bytes]) -> bytes:
        """Decode hexadecimal, whose digits are base64 letters too, so they are in these runs."""
        long = b" ".join(run for run in found if len(run) >= self._least_pairs)
        pairs = long.translate(_SPACES_FOR_OTHERS).split()
        runs = dict.fromkeys(run for run in pairs if len(run) >= self._least_pairs)
        even = (
            run[start : start + (len(run) - start) // 2 * 2] for run in runs for start in (0, 1)
        )
        return b"\x01".join(map(binascii.unhexlify, even))

    def _decode_numbers(self, text: bytes) -> bytes:
        found = (run.split(b",") for run in _all(self._numbers, text))
        long = (run for run in found if len(run) >= self._least_numbers)
        return b"\x01".join(bytes(min(int(one), 255) for one in run) for run in long)

    def _decode_characters(self, text: bytes) -> bytes:
        """Join the single characters of lists."""
        found = _all(self._characters, text)
        return b"\x01".join(
            b"".join(item.rstrip(b", \t\r\n")[1:-1] for item in _all(self._character, run))
            for run in found
        )


def _all(pattern: re.Pattern[bytes], text: bytes) -> list[bytes]:
    return [text[slice(*found.span())] for found in pattern.finditer(text)]


def _is_utf8(content: bytes) -> bool:
    """Whether it is UTF-8, possibly cut within a character at both ends."""
    start = next((at for at in range(min(4, len(content))) if content[at] & 0xC0 != 0x80), 0)
    try:
        codecs.utf_8_decode(content[start:], "strict", False)  # noqa: FBT003 - of the library
    except UnicodeDecodeError:
        return False
    return True


def _decoded_at(runs: list[bytes], start: int) -> bytes:
    """Decode every run from that letter on, zeros between them."""
    padded = (run[start:] + _PADS[(len(run) - start) % 4] for run in runs)
    return binascii.a2b_base64(_GAP.join(padded))


def _whole(run: bytes) -> bytes:
    run = run[: len(run) - (len(run) % 4 == 1)]
    return binascii.a2b_base64(run + b"=" * (-len(run) % 4))


def _packed_at(run: bytes) -> int:
    """Where compressed data begins in a run. -1: nowhere."""
    places = [run.find(start) for start in _PACKED_STARTS[:_ANYWHERE]]
    places += [0] if run.startswith(_PACKED_STARTS) else []
    return min((place for place in places if place >= 0), default=-1)


def _unfold(text: bytes) -> bytes:
    if b"\n " in text or b"\n\t" in text:
        text = _INDENTED.sub(b"", text)
    return text.translate(None, b"\r\n")


_PACKED_SIGN: Final = compile_re2(
    b"|".join((*_PACKED_STARTS[:_ANYWHERE], *(rb"\n" + start for start in _PACKED_STARTS)))
)
"""Matches runs, one a line, of which one begins like compressed data."""


_FIELD: Final = (
    rb'"(method)": ?"([A-Za-z]{1,40})"'
    rb'|"(key|text|value|data|chunk|payload|payloadData|message|body|buffer)": ?'
    rb'"((?:[^"\\]|\\.)*)"'
)
_LONGEST_BYTES: Final = 4096
"""The longest value that is joined with its neighbours; of a longer one only the ends are."""
_MOST_FIELDS: Final = 1000
_KEY_GAP: Final = b'"\x01"'


class FieldJoiner:
    """Joins the values of each field, by method and over all methods."""

    def __init__(self, *, tail_bytes: int) -> None:
        self._pattern = compile_re2(_FIELD)
        self._ends: dict[tuple[bytes, bytes], bytes] = {}
        self._tail_bytes = tail_bytes
        self._method = b""

    def join_fields(self, window: bytes, *, known_bytes: int) -> bytes:
        """Join the window's new fields with those before.

        `known_bytes`: how much of the window's start was given before.
        """
        if b'"method"' not in window and b'":' not in window:
            return b""
        texts: dict[tuple[bytes, bytes], deque[bytes]] = {}
        for found in self._pattern.finditer(window):
            if found.end() > known_bytes:
                self._note(found, texts)
        joined = (self._continue(whose, b"".join(parts)) for whose, parts in texts.items())
        return _KEY_GAP.join(joined)

    def _note(self, found: re.Match[bytes], texts: dict[tuple[bytes, bytes], deque[bytes]]) -> None:
        if found.group(1):
            self._method = found.group(2)
            return
        field, value = found.group(3), found.group(4)
        if field == b"key" and not _is_one_key(value):
            return
        if len(value) > _LONGEST_BYTES:
            value = value[: _LONGEST_BYTES // 2] + _KEY_GAP + value[-_LONGEST_BYTES // 2 :]
        for whose in ((b"", field), (self._method, field)):
            texts.setdefault(whose, deque()).append(value)

    def _continue(self, whose: tuple[bytes, bytes], text: bytes) -> bytes:
        if len(self._ends) > _MOST_FIELDS:
            self._ends.clear()
        text = self._ends.get(whose, b"") + text
        self._ends[whose] = text[-self._tail_bytes :]
        return text


def _is_one_key(value: bytes) -> bool:
    """Whether it is one character, not a key's name such as Enter; an escape is one too."""
    return value.startswith(b"\\") or len(value.decode("utf-8", "replace")) == 1


_LAYERS: Final = 7
"""How many layers of escapes are removed: three, and those of reports and traces around them."""
_GROWTH: Final = 6
"""How many times longer a secret is in quoted-printable that is escaped once more."""
_LEAST_REACH_BYTES: Final = 64

BodyScan = Callable[[bytes, int], bool]
"""Whether a decoded body has a secret; the number is its depth."""


class Layers:
    """Decodes one layer after the other and searches each."""

    def __init__(self, needles: Needles, limits: ScanLimits, body: BodyScan) -> None:
        self._needles = needles
        self._blocks = Blocks(needles)
        self._limits = limits
        self._reach_bytes = _GROWTH * needles.longest_bytes + _LEAST_REACH_BYTES
        self._body = body

    def hold(self, text: bytes, depth: int) -> bool:
        """Whether a secret is in it: plain, in UTF-16 or in quoted-printable.

        Raises:
            UnscannableError: it exceeds the limits.
        """
        if self._needles.are_certainly_in(text):
            return True
        text = self._blocks.filter_readable(text)
        if self._held_in_layers(text, depth):
            return True
        if b"\0" in text and self._held_in_layers(text.translate(None, b"\0"), depth):
            return True
        plain = decode_quoted_printable(text, reach_bytes=self._reach_bytes)
        return bool(plain) and self._held_in_layers(plain, depth)

    def _held_in_layers(self, text: bytes, depth: int) -> bool:
        for _ in range(_LAYERS):
            if self._needles.are_in(text) or self._are_in_wide(text):
                return True
            outer, text = text, remove_escapes(text)
            if outer == text:
                break
        if depth >= self._limits.depth:
            return False
        return self._held_in_blocks(text, depth)

    def _are_in_wide(self, text: bytes) -> bool:
        """Whether one is there in UTF-16 or UTF-32 whose zeros were escaped."""
        return b"\0" in text and self._needles.are_in(text.translate(None, b"\0"))

    def _held_in_blocks(self, text: bytes, depth: int) -> bool:
        if self._blocks.hold_alone(text):
            return True
        runs = self._blocks.runs(text)
        decoded = self._blocks.decode(text, runs)
        if decoded and self.hold(decoded, depth + 1):
            return True
        return any(self._body(body, depth + 1) for body in self._blocks.find_compressed(runs))
