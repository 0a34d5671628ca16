r"""Undo escapes, which need looking at where letters and digits are escaped too: `%41`, `\x41`.

Nothing escapes these in the usual course; what does so escapes everything, whatever it was
encoded in before.
"""

import html.entities
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from runners.kit.secrets.bricks import (
    AMPERSAND,
    BACKSLASHES,
    EQUALS,
    HASH,
    LINE_END,
    PERCENT,
    SEMICOLON,
)
from runners.kit.secrets.view import Kind, View

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
"""Of a letter or a digit; zeros of wide characters."""
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


def unescaped(stretch: bytes) -> Iterator[View]:
    """Without percent-encoding, HTML entities and backslash escapes, one level of each."""
    return _without(stretch, _ESCAPED)


def uncss(stretch: bytes) -> Iterator[View]:
    """Without the escapes of style sheets, which other languages read as something else."""
    return _without(stretch, _CSS)


def unprintable(stretch: bytes) -> Iterator[View]:
    """Without quoted-printable."""
    return _without(stretch, _PRINTABLE)


def spliced(stretch: bytes) -> Iterator[View]:
    """Without colours of terminals and the line ends that encodings put into a text."""
    return _without(stretch, _SPLICE)


class _Unit(NamedTuple):
    """One escape: where it stands and what it means."""

    start: int
    end: int
    meaning: bytes


def _without(stretch: bytes, escapes: re.Pattern[bytes]) -> Iterator[View]:
    units = [
        _Unit(found.start(), found.end(), _meaning(found)) for found in escapes.finditer(stretch)
    ]
    if units:
        yield _joined(stretch, units)


def _joined(stretch: bytes, units: Iterable[_Unit]) -> View:
    """The text with each unit replaced by its meaning."""
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
    return View(bytes(content), _placing(decoded_at, starts, ends), Kind.TEXT)


def _placing(
    decoded_at: list[int], starts: list[int], ends: list[int]
) -> Callable[[int, int], tuple[int, int]]:
    """Even entries are text as it stood, odd ones are units."""

    def place(first: int, last: int) -> tuple[int, int]:
        entry = bisect_right(decoded_at, first) - 1
        start = starts[entry] + (0 if entry % 2 else first - decoded_at[entry])
        entry = bisect_right(decoded_at, last) - 1
        end = ends[entry] if entry % 2 else starts[entry] + last - decoded_at[entry] + 1
        return start, end

    return place


def _meaning(found: re.Match[bytes]) -> bytes:
    name = found.lastgroup
    own = b"" if name == "percent" else _own_backslash(found.group())
    return own if name is None else own + _MEANINGS[name](found.group(name), found.group())


def _own_backslash(escape: bytes) -> bytes:
    """A backslash that stood before: those of the escape itself double each time."""
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
"""By the name of the group that an escape was found in."""
