r"""How one character is written behind a backslash: `\u00e9`, `\xe9`, `\n` and so on."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from runners.kit.secrets.bricks import BACKSLASHES, hex_digits


class Way(NamedTuple):
    """One way of writing a character."""

    name: str
    of: Callable[[str], Iterator[str]]
    """Expressions for the character; none where it is not written so."""


def utf8(char: str) -> bytes:
    """The character in UTF-8, where it is half of a pair too."""
    return char.encode("utf-8", "surrogatepass")


def encodings(text: str) -> tuple[bytes, ...]:
    """The text in UTF-8, and where it differs in Latin-1, or as Windows has that."""
    encoded = utf8(text)
    if text.isascii():
        return (encoded,)
    for charset in ("latin-1", "cp1252"):
        with suppress(UnicodeEncodeError):
            return encoded, text.encode(charset)
    return (encoded,)


def _units(char: str) -> Iterator[str]:
    r"""`\u00e9`, pairs above the basic plane; `\ufffd` or `\u00c3\u00a9` where it was misread."""
    units = char.encode("utf-16-be", "surrogatepass")
    pairs = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    yield BACKSLASHES.join(f"u{hex_digits(unit)}" for unit in pairs)
    if ord(char) >= 128:
        yield f"u{hex_digits('fffd')}"
        yield BACKSLASHES.join(f"u00{hex_digits(f'{byte:02x}')}" for byte in utf8(char))


def _braces(char: str) -> Iterator[str]:
    yield rf"u\{{0*{hex_digits(f'{ord(char):x}')}\}}"


def _long(char: str) -> Iterator[str]:
    yield f"U{hex_digits(f'{ord(char):08x}')}"


def _two_digits(char: str) -> Iterator[str]:
    r"""`\xe9`, and `\xc3\xa9` as Python writes bytes."""
    for encoded in encodings(char):
        yield BACKSLASHES.join(f"x{hex_digits(f'{byte:02x}')}" for byte in encoded)


def _octal(char: str) -> Iterator[str]:
    for encoded in encodings(char):
        yield BACKSLASHES.join(f"{byte:03o}" for byte in encoded)


def _css(char: str) -> Iterator[str]:
    yield f"0*{hex_digits(f'{ord(char):x}')} ?"


def _letter(char: str) -> Iterator[str]:
    letter = _LETTERS.get(char)
    if letter is not None:
        yield letter


_LETTERS: Final = {
    "\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f", "\v": "v", "\a": "a", "\x1b": "e"
}  # fmt: skip

ESCAPES: tuple[Way, ...] = (
    Way("unicode escape", _units),
    Way("unicode escape in braces", _braces),
    Way("unicode escape of eight digits", _long),
    Way("escape of two digits", _two_digits),
    Way("octal escape", _octal),
    Way("CSS escape", _css),
    Way("letter escape", _letter),
)
"""What follows a backslash."""
