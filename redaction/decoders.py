r"""Decodes text, and maps each decoded byte to its place in the original.

Nested encodings cannot all be listed as forms. A text is therefore searched for their signs, which
are rare; what surrounds a sign is decoded and searched like the text itself. Escapes have a sign
only where letters and digits are escaped too (`%41`, `\x41`): an encoder that escapes those
escapes everything.
"""

import binascii
import html.entities
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cache
from itertools import chain
from typing import Final, NamedTuple

from redaction.compiled import compile_once, contains_form, find_separate
from redaction.encodings import (
    AMPERSAND,
    BACKSLASH,
    BACKSLASHES,
    BETWEEN_BYTES,
    EQUALS,
    HASH,
    LINE_END,
    PERCENT,
    SEMICOLON,
)


class Kind(IntEnum):
    """The encoding of a match; of overlapping matches the highest value decides."""

    TEXT = 0
    WIDE = 1
    HEX = 2
    BASE64 = 3
    NUMBERS = 4


class DecodedView(NamedTuple):
    """A decoded part of a text."""

    content: bytes
    locate: Callable[[int, int], tuple[int, int]]
    """Maps the decoded bytes from first to last (inclusive) to their range in the original."""
    kind: Kind


_HEX: Final = "(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])"
_DECIMAL: Final = "(?:4[89]|5[0-7]|6[5-9]|[78][0-9]|90|9[7-9]|10[0-9]|11[0-9]|12[0-2])"
_OCTAL: Final = "(?:0?6[0-7]|0?7[01]|1[0-7][0-7])"
"""Letters and digits."""

_ANY_HEX: Final = "[0-9A-Fa-f]"

PERCENT_SIGN: Final = f"{PERCENT}{_HEX}|(?:(?:[^%]|{PERCENT}{_ANY_HEX}{_ANY_HEX}){PERCENT}00){{4}}"
ENTITY_SIGN: Final = (
    rf"{AMPERSAND}(?:amp{SEMICOLON})*{HASH}0*(?:{_DECIMAL}|[xX]0*{_HEX})"
    rf"(?:{SEMICOLON}|{BACKSLASHES}(?:073|x3[bB]|u003[bB]))"
)
ESCAPE_SIGN: Final = (
    rf"{BACKSLASHES}(?:u00{_HEX}|u(?:\{{|{PERCENT}7[bB])0*{_HEX}|U000000{_HEX}|x{_HEX}|{_OCTAL})"
    rf"|(?:(?:[^\\]|{BACKSLASHES}(?:x{_ANY_HEX}{_ANY_HEX}|u{_ANY_HEX}{{4}}|{_ANY_HEX}+))?"
    rf"{BACKSLASHES}(?:x00|u0000|0+)){{4}}"
)
"""An escaped letter or digit, or the escaped zeros of UTF-16 and UTF-32."""
CSS_SIGN: Final = rf"{BACKSLASHES}(?:0*{_HEX}(?:[ +]|{PERCENT}20)|0000{_HEX})"
PRINTABLE_SIGN: Final = (
    f"=[2-7]{_ANY_HEX}=[2-7]{_ANY_HEX}|(?:(?:[^=]|={_ANY_HEX}{_ANY_HEX})=00){{4}}"
)
SPLICE_SIGN: Final = (
    rf"(?:\x1b|{PERCENT}1[bB]|{BACKSLASHES}(?:u001[bB]|x1[bB]|033|e))(?:\[|{PERCENT}5[bB])[0-9;]*m"
    rf"|{EQUALS}{LINE_END}"
)

_ESCAPED: Final = re.compile(
    rb"%(?:25)*(?P<percent>[0-9A-Fa-f]{2})"
    rb"|&(?:amp;)*(?:#0*(?P<decimal>[0-9]{1,7})|#[xX]0*(?P<hexadecimal>[0-9A-Fa-f]{1,6})"
    rb"|(?P<named>[A-Za-z][A-Za-z0-9]{1,30}))(?:;|\\+(?:073|x3[bB]|u003[bB]))?"
    rb"|\\+(?:u(?P<unit>[0-9A-Fa-f]{4})|u\{0*(?P<braces>[0-9A-Fa-f]{1,6})\}"
    rb"|U(?P<long>[0-9A-Fa-f]{8})|x(?P<two>[0-9A-Fa-f]{2})|(?P<octal>[0-3]?[0-7]{2})"
    rb"|(?P<letter>[nrtbfva])|(?P<itself>[^0-9A-Za-z\\&%]))?"
)
"""A backslash takes no `&` or `%`: an escape of their own may begin with them."""
_CSS: Final = re.compile(
    rb"(?:\\|%(?:25)*5[cC])+(?:0{0,4}(?P<hexadecimal>[0-9A-Fa-f]{1,6})(?:[ +\n]|%(?:25)*20)?"
    rb"|(?P<itself>[^0-9A-Za-z\\%]))?"
)
_PRINTABLE: Final = re.compile(rb"=(?P<percent>[0-9A-Fa-f]{2})")
_SPLICE: Final = re.compile(
    rb"(?:\x1b|%(?:25)*1[bB]|(?:\\|%(?:25)*5[cC]){1,32}(?:u001[bB]|x1[bB]|033|e))"
    rb"(?:\[|%(?:25)*5[bB])[0-9;]*m"
    rb"|(?:=(?:3[dD])*|%(?:25)*3[dD])"
    rb"(?:\r?\n|(?:%(?:25)*0[dD])?%(?:25)*0[aA]"
    rb"|(?:(?:\\|%(?:25)*5[cC]){1,32}r)?(?:\\|%(?:25)*5[cC]){1,32}n)"
)
_SLASH: Final = re.compile(rb"\\|%(?:25)*5[cC]")
_SLASHES: Final = re.compile(rb"\A(?:\\|%(?:25)*5[cC])+")
_LETTERS: Final = dict(zip(b"nrtbfva", b"\n\r\t\b\f\v\a", strict=True))


def decode_escapes(stretch: bytes) -> Iterator[DecodedView]:
    """Decode one level of percent-encoding, HTML entities and backslash escapes."""
    return _replace_escapes(stretch, _ESCAPED)


def decode_css(stretch: bytes) -> Iterator[DecodedView]:
    """Decode CSS escapes, which other languages read differently."""
    return _replace_escapes(stretch, _CSS)


def decode_quoted_printable(stretch: bytes) -> Iterator[DecodedView]:
    """Decode quoted-printable."""
    return _replace_escapes(stretch, _PRINTABLE)


def remove_breaks(stretch: bytes) -> Iterator[DecodedView]:
    """Remove terminal colours and soft line breaks."""
    return _replace_escapes(stretch, _SPLICE)


class _Unit(NamedTuple):
    """One escape: its range and its meaning."""

    start: int
    end: int
    meaning: bytes


def _replace_escapes(stretch: bytes, escapes: re.Pattern[bytes]) -> Iterator[DecodedView]:
    units = [
        _Unit(found.start(), found.end(), _meaning(found)) for found in escapes.finditer(stretch)
    ]
    if units:
        yield _join(stretch, units)


def _join(stretch: bytes, units: Iterable[_Unit]) -> DecodedView:
    """Replace each escape by its meaning."""
    content = bytearray()
    decoded_at, starts, ends = [0], [0], [0]
    at = 0
    for unit in units:
        content += stretch[at : unit.start]
        decoded_at.append(len(content))
        starts.append(unit.start)
        ends.append(unit.end)
        content += unit.meaning
        decoded_at.append(len(content))
        starts.append(unit.end)
        ends.append(unit.end)
        at = unit.end
    content += stretch[at:]
    return DecodedView(bytes(content), _make_locator(decoded_at, starts, ends), Kind.TEXT)


def _make_locator(
    decoded_at: list[int], starts: list[int], ends: list[int]
) -> Callable[[int, int], tuple[int, int]]:
    """Make the mapping; even entries are plain text, odd ones are escapes."""

    def locate(first: int, last: int) -> tuple[int, int]:
        entry = bisect_right(decoded_at, first) - 1
        start = starts[entry] + (0 if entry % 2 else first - decoded_at[entry])
        entry = bisect_right(decoded_at, last) - 1
        end = ends[entry] if entry % 2 else starts[entry] + last - decoded_at[entry] + 1
        return start, end

    return locate


def _meaning(found: re.Match[bytes]) -> bytes:
    name = found.lastgroup
    own = b"" if name == "percent" else _own_backslash(found.group())
    return own if name is None else own + _MEANINGS[name](found.group(name), found.group())


def _own_backslash(escape: bytes) -> bytes:
    """A literal backslash before the escape; the escape's own double at each level."""
    if escape.startswith(b"%"):
        escape = _SLASHES.sub(lambda run: b"\\" * len(_SLASH.findall(run.group())), escape)
    slashes = len(escape) - len(escape.lstrip(b"\\"))
    is_escape = slashes & (slashes - 1) == 0 and slashes < len(escape)
    return b"" if is_escape or not slashes else b"\\"


def _code_point(base: int) -> Callable[[bytes, bytes], bytes]:
    def meaning(digits: bytes, whole: bytes) -> bytes:
        number = int(digits, base)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            return whole
        return chr(number).encode()

    return meaning


def _byte(base: int) -> Callable[[bytes, bytes], bytes]:
    return lambda digits, _: bytes([int(digits, base)])


def _entity(name: bytes, whole: bytes) -> bytes:
    char = html.entities.html5.get(f"{name.decode()};")
    return whole if char is None else char.encode()


_MEANINGS: Final[dict[str, Callable[[bytes, bytes], bytes]]] = {
    "percent": _byte(16),
    "decimal": _code_point(10),
    "hexadecimal": _code_point(16),
    "named": _entity,
    "unit": _code_point(16),
    "braces": _code_point(16),
    "long": _code_point(16),
    "two": _byte(16),
    "octal": _byte(8),
    "letter": lambda letter, _: bytes([_LETTERS[letter[0]]]),
    "itself": lambda char, _: char,
}
"""Decodes an escape, by the name of the group that matched."""


_ANY: Final = rf"(?:[A-Za-z0-9+/_\-]|{PERCENT}2[bBfF]|{BACKSLASHES}(?:/|u002[bBfF]))"
_PRINTABLE_BASE64: Final = rf"[I-Za-f][C-HS-Xi-nyz0-3][ABEFIJMNQRUVYZcdghklopstwx014589]{_ANY}"
_WIDE: Final = rf"[I-Za-f][AQgw][AB]{_ANY}"
_WIDE_AFTER: Final = "A[C-H][AEIMQUYcgkosw048]A"
_LINE: Final = "[A-Za-z0-9+/]"

BASE64_SIGN: Final = (
    f"(?:{_PRINTABLE_BASE64}){{3}}"
    f"|(?:{_WIDE}{_WIDE_AFTER}){{2}}"
    rf"|{_LINE}{{60}}{LINE_END}[ \t]*{_LINE}"
)
"""Base64 of printable UTF-8 or UTF-16, or a full line of any base64; words do not match."""
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
"""Characters that end every base64 run."""
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


def decode_base64(stretch: bytes) -> Iterator[DecodedView]:
    """Decode each run that looks like base64, at its four alignments."""
    for run in _find_base64_runs(stretch):
        letters, starts, ends = _letters(run.group(), run.start())
        for skipped in range(4):
            sextets = _Sextets(starts, ends, skipped)
            yield DecodedView(_decode(letters[skipped:]), sextets.locate, Kind.BASE64)


def _find_base64_runs(stretch: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the runs with a sign; others, as words, are never inspected."""
    over = 0
    (sign,) = compile_once(BASE64_SIGN)
    for start, _ in find_separate(sign, stretch):
        if start < over:
            continue
        begins = max(over, 1 + max(stretch.rfind(stop, over, start) for stop in _STOPS))
        for run in _BASE64_RUN.finditer(stretch, begins):
            over = run.end()
            if over > start:
                if contains_form(BASE64_SIGN, run.group()):
                    yield run
                break


def _letters(run: bytes, at: int) -> tuple[bytes, Sequence[int], Sequence[int]]:
    """The letters of a run, and the start and end of each."""
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


def _decode(letters: bytes) -> bytes:
    """Decode the letters up to the last whole byte."""
    padded = letters + b"A" * (-len(letters) % 4)
    return binascii.a2b_base64(padded)[: len(letters) * 6 // 8]


class _Sextets:
    """Maps a byte to its two base64 letters."""

    def __init__(self, starts: Sequence[int], ends: Sequence[int], skipped: int) -> None:
        self._starts = starts
        self._ends = ends
        self._skipped = skipped

    def locate(self, first: int, last: int) -> tuple[int, int]:
        return self._starts[self._letter(first)], self._ends[self._letter(last) + 1]

    def _letter(self, byte: int) -> int:
        return self._skipped + byte // 3 * 4 + byte % 3


def decode_hex(stretch: bytes) -> Iterator[DecodedView]:
    """Decode each run of hexadecimal digits, in both ways of pairing them."""
    for run in _HEX_RUN.finditer(stretch):
        digits, starts = _digits(run.group(), run.start())
        for skipped in (0, 1):
            even = len(digits) - (len(digits) - skipped) % 2
            content = binascii.a2b_hex(digits[skipped:even])
            yield DecodedView(content, _Pairs(starts, skipped).locate, Kind.HEX)


def _digits(run: bytes, at: int) -> tuple[bytes, Sequence[int]]:
    """The digits of a run and their places; most runs are plain hashes."""
    if _PLAIN_HEX.fullmatch(run):
        return run, range(at, at + len(run))
    found = [digit for digit in _HEX_DIGIT.finditer(run) if digit.lastindex]
    return b"".join(digit.group() for digit in found), [at + digit.start() for digit in found]


class _Pairs:
    """Maps a byte to its two hexadecimal digits."""

    def __init__(self, starts: Sequence[int], skipped: int) -> None:
        self._starts = starts
        self._skipped = skipped

    def locate(self, first: int, last: int) -> tuple[int, int]:
        at = self._skipped
        return self._starts[at + 2 * first], self._starts[at + 2 * last + 1] + 1


def decode_wide(stretch: bytes) -> Iterator[DecodedView]:
    """Decode runs of UTF-16 or UTF-32 to one byte a character."""
    for run in _WIDE_RUN.finditer(stretch):
        text = run.group()
        starts = [run.start() + at for at, byte in enumerate(text) if byte]
        yield DecodedView(text.replace(b"\0", b""), _Singles(starts).locate, Kind.WIDE)


class _Singles:
    """Maps a byte to the non-zero byte of its wide character."""

    def __init__(self, starts: Sequence[int]) -> None:
        self._starts = starts

    def locate(self, first: int, last: int) -> tuple[int, int]:
        return self._starts[first], self._starts[last] + 1


_QUOTE: Final = rf"{BACKSLASH}*['\"]"
_BREAK: Final = rf"(?:[ \t\r\n]|{BACKSLASHES}[nrt])*"
LIST_SIGN: Final = (
    rf"(?:{_QUOTE}(?:[^\\'\"\x00-\x1f\x80-\xff]|[\xc2-\xf4][\x80-\xbf]+){_QUOTE},{_BREAK}){{3}}"
    rf"|\[{_BREAK}(?:[0-9]{{1,3}},{_BREAK}){{5}}"
)
"""Single characters in quotes, or the first bytes of a list: numbers alone are everywhere, and
cost 3 % of the search for one secret."""
_BREAK_IN_RUN: Final = rb"(?:[ \t\r\n]|\\+[nrt])*"
_LIST_RUN: Final = re.compile(
    rb"(?:\\*['\"](?:[^\\'\"\x00-\x1f\x80-\xff]|[\xc2-\xf4][\x80-\xbf]{1,3})\\*['\"],?"
    + _BREAK_IN_RUN
    + rb"){4,}|(?:[0-9]{1,3},"
    + _BREAK_IN_RUN
    + rb"){5,}[0-9]{1,3}"
)
_CHAR_ITEM: Final = re.compile(rb"['\"]((?:[^\\'\"\x80-\xff]|[\xc2-\xf4][\x80-\xbf]{1,3}))\\*['\"]")
_NUMBER_ITEM: Final = re.compile(rb"[0-9]+")
_LARGEST_BYTE: Final = 255


def decode_lists(stretch: bytes) -> Iterator[DecodedView]:
    """Decode lists of single characters and of bytes."""
    for run in _LIST_RUN.finditer(stretch):
        is_numbers = run.group()[:1].isdigit()
        content, starts, ends = bytearray(), [], []
        for item in (_NUMBER_ITEM if is_numbers else _CHAR_ITEM).finditer(run.group()):
            group = 0 if is_numbers else 1
            start, end = run.start() + item.start(group), run.start() + item.end(group)
            char = _byte_of(item.group()) if is_numbers else item.group(1)
            content += char
            starts += [start] * len(char)
            ends += [end] * len(char)
        kind = Kind.NUMBERS if is_numbers else Kind.TEXT
        yield DecodedView(bytes(content), _Items(starts, ends).locate, kind)


def _byte_of(digits: bytes) -> bytes:
    return bytes([min(int(digits), _LARGEST_BYTE)])


class _Items:
    """Maps a byte to its item in a list."""

    def __init__(self, starts: Sequence[int], ends: Sequence[int]) -> None:
        self._starts = starts
        self._ends = ends

    def locate(self, first: int, last: int) -> tuple[int, int]:
        return self._starts[first], self._ends[last]


class Decoder(NamedTuple):
    """A decoder and the sign of its encoding."""

    name: str
    sign: str
    """An expression for RE2."""
    decode: Callable[[bytes], Iterator[DecodedView]]


DECODERS: tuple[Decoder, ...] = (
    Decoder("percent", PERCENT_SIGN, decode_escapes),
    Decoder("entities", ENTITY_SIGN, decode_escapes),
    Decoder("escapes", ESCAPE_SIGN, decode_escapes),
    Decoder("CSS", CSS_SIGN, decode_css),
    Decoder("quoted-printable", PRINTABLE_SIGN, decode_quoted_printable),
    Decoder("colours and soft line ends", SPLICE_SIGN, remove_breaks),
    Decoder("base64", BASE64_SIGN, decode_base64),
    Decoder("hexadecimal", HEX_SIGN, decode_hex),
    Decoder("wide characters", WIDE_SIGN, decode_wide),
    Decoder("lists", LIST_SIGN, decode_lists),
)


def sign_runs() -> tuple[str, ...]:
    """Expressions for runs of signs: base64's and all others.

    In one expression the places at which base64 may begin would multiply the states of the others.
    """
    return tuple(runs for runs, _ in _group_decoders(DECODERS))


def decode_views(text: bytes) -> Iterator[DecodedView]:
    """Decode the text in each encoding of which it has a sign."""
    likely = [all_of for runs, all_of in _group_decoders(DECODERS) if contains_form(runs, text)]
    seen = [one.decode for one in chain.from_iterable(likely) if contains_form(one.sign, text)]
    for decode in dict.fromkeys(seen):
        yield from decode(text)


@cache
def _group_decoders(decoders: tuple[Decoder, ...]) -> tuple[tuple[str, tuple[Decoder, ...]], ...]:
    """Group the decoders whose signs are searched for together, with one expression each."""
    base64 = tuple(one for one in decoders if one.decode is decode_base64)
    others = tuple(one for one in decoders if one not in base64)
    return tuple((_join_signs(group), group) for group in (base64, others) if group)


def _join_signs(decoders: tuple[Decoder, ...]) -> str:
    return f"(?:{'|'.join(decoder.sign for decoder in decoders)})+"
