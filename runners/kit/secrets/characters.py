r"""How one character is written: raw, `%2F`, `&quot;`, `\u00e9`, `=3D` and so on.

Browsers, servers and libraries encode character by character and mix their ways, so each
character that is no letter or digit may stand in any of them, whatever its neighbours do.
Letters and digits are encoded by nobody, or all of them; `views` undoes that.
"""

import html.entities
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Final, NamedTuple

from runners.kit.secrets.bricks import (
    AMPERSAND,
    BACKSLASH,
    BACKSLASHES,
    EQUALS,
    HASH,
    LETTERS_AND_DIGITS,
    PERCENT,
    SEMICOLON,
    begun,
    hex_byte,
    hex_digits,
    literal,
)

_REMEMBERED_CHARS: Final = 1024
_SLASH: Final = "\\"
_BEFORE_NAME: Final = f"{AMPERSAND}(?:amp{SEMICOLON})*"
_AFTER_NAME: Final = f"{SEMICOLON}?"
"""What stands around an entity's name."""
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}".encode()


class Way(NamedTuple):
    """One way of writing a character."""

    name: str
    of: Callable[[str], Iterator[str]]
    """Expressions for the character; none where it is not written so."""


def alike(text: str) -> str:
    """The text without what each encoding writes in another way."""
    # Escaping doubles backslashes, so how many there are beside each other says nothing.
    while "\\\\" in text:
        text = text.replace("\\\\", "\\")
    return text.replace("\r\n", "\n")


def mixed(text: str) -> str:
    """The text with each character in any of its ways."""
    return "".join(each_mixed(alike(text)))


def each_mixed(text: str) -> Iterator[str]:
    """Of a text without what each encoding writes in another way, one character after the other.

    A backslash that it begins with comes with what follows, in whose place nothing comes then.
    """
    is_joined = text[0] == _SLASH and len(text) > 1
    yield from (_after_backslash(text[1]), "") if is_joined else (_first(text[0]),)
    yield from map(_character, text[1 + is_joined :])


def _character(char: str) -> str:
    """One character, before which any number of backslashes may stand for nothing."""
    if char in LETTERS_AND_DIGITS:
        return char
    if char == _SLASH:
        return f"(?:{BACKSLASHES}(?:{_escaped(char)})?|{'|'.join(_plain(char))})"
    idle = "" if char.isalnum() else f"{BACKSLASH}*"
    return f"(?:{BACKSLASHES}(?:{_escaped(char)})|{idle}(?:{'|'.join(_plain(char))}))"


def _first(char: str) -> str:
    """The first of a text, before which one backslash may stand."""
    if char in LETTERS_AND_DIGITS:
        return char
    plain = "|".join(map(begun, _plain(char)))
    if char == _SLASH:
        return f"(?:{BACKSLASH}(?:{_escaped(char)})?|{plain})"
    idle = "" if char.isalnum() else f"{BACKSLASH}?"
    return f"(?:{BACKSLASH}(?:{_escaped(char)})|{idle}(?:{plain}))"


def _after_backslash(char: str) -> str:
    """A backslash that a text begins with, of a run of these the last, and what follows it."""
    bare = (_raw, _percent)
    others = _compact(form for way in PLAIN_WAYS if way.of not in bare for form in way.of(_SLASH))
    encoded = "|".join((f"{BACKSLASH}(?:{_escaped(_SLASH)})", *map(begun, others)))
    return f"(?:{BACKSLASH}{_first(char)}|(?:{encoded}){_character(char)})"


def _plain(char: str) -> list[str]:
    return _compact(form for way in PLAIN_WAYS for form in way.of(char))


def _compact(forms: Iterable[str]) -> list[str]:
    """The forms with their entities as one, since what stands around the names is most of them."""
    found = list(forms)
    others = [form for form in found if not form.startswith(_BEFORE_NAME)]
    names = [
        form.removeprefix(_BEFORE_NAME).removesuffix(_AFTER_NAME)
        for form in found
        if form.startswith(_BEFORE_NAME)
    ]
    return [*others, _entity(f"(?:{'|'.join(names)})")] if names else others


def _escaped(char: str) -> str:
    return "|".join(form for way in ESCAPES for form in way.of(char))


def _utf8(char: str) -> bytes:
    return char.encode("utf-8", "surrogatepass")


def _encodings(char: str) -> tuple[bytes, ...]:
    """The character in UTF-8, and in Latin-1 where that differs."""
    encoded = _utf8(char)
    return (encoded, bytes([ord(char)])) if 128 <= ord(char) < 256 else (encoded,)


def _raw(char: str) -> Iterator[str]:
    yield literal(_utf8(char))


def _latin1(char: str) -> Iterator[str]:
    yield from map(literal, _encodings(char)[1:])


def _replacement(char: str) -> Iterator[str]:
    """What readers put in the place of bytes that are no UTF-8, as those of Latin-1 are."""
    if ord(char) >= 128:
        yield literal(_REPLACEMENT)


def _misread(char: str) -> Iterator[str]:
    """`Ã¼` for `ü`: its bytes read as Latin-1, or as Windows has that, and written anew."""
    if ord(char) >= 128:
        encoded = _utf8(char)
        for charset in ("latin-1", "cp1252"):
            with suppress(UnicodeDecodeError):
                yield literal(encoded.decode(charset).encode())


def _percent(char: str) -> Iterator[str]:
    yield from _in_signs(char, before_each=PERCENT)


def _quoted_printable(char: str) -> Iterator[str]:
    yield from _in_signs(char, before_each=EQUALS)


def _in_signs(char: str, *, before_each: str) -> Iterator[str]:
    """The bytes as numbers after a sign; of several bytes some may stand as they are."""
    for encoded in _encodings(char):
        if len(encoded) == 1:
            yield hex_byte(encoded, after=before_each)
        else:
            bytes_of = (encoded[at : at + 1] for at in range(len(encoded)))
            yield "".join(
                f"(?:{hex_byte(byte, after=before_each)}|{literal(byte)})" for byte in bytes_of
            )


def _entity(name: str) -> str:
    return f"{_BEFORE_NAME}{name}{_AFTER_NAME}"


def _decimal_entity(char: str) -> Iterator[str]:
    yield _entity(f"{HASH}0*{ord(char)}")


def _hexadecimal_entity(char: str) -> Iterator[str]:
    yield _entity(f"{HASH}[xX]0*{hex_digits(f'{ord(char):x}')}")


def _named_entity(char: str) -> Iterator[str]:
    names = _entity_names(char)
    if names:
        yield _entity(f"(?:{'|'.join(names)})")


@lru_cache(maxsize=_REMEMBERED_CHARS)
def _entity_names(char: str) -> tuple[str, ...]:
    """What HTML calls the character. Looked for one by one: a table of all holds 300 kB."""
    known = html.entities.html5.items()
    return tuple(name[:-1] for name, means in known if means == char and name.endswith(";"))


def _spaces(char: str) -> Iterator[str]:
    """A form's `+`, and the space that does not break."""
    if char == " ":
        yield from (r"\+", rf"{PERCENT}2[bB]", r"\xc2\xa0", rf"{PERCENT}[aA]0", _entity("nbsp"))


def _line_ends(char: str) -> Iterator[str]:
    if char == "\n":
        yield rf"(?:{BACKSLASHES}r|\r|{PERCENT}0[dD])(?:\n|{PERCENT}0[aA]|{BACKSLASHES}n)?"


PLAIN_WAYS: tuple[Way, ...] = (
    Way("raw", _raw),
    Way("latin-1", _latin1),
    Way("replacement character", _replacement),
    Way("UTF-8 read as Latin-1", _misread),
    Way("percent", _percent),
    Way("quoted-printable", _quoted_printable),
    Way("decimal entity", _decimal_entity),
    Way("hexadecimal entity", _hexadecimal_entity),
    Way("named entity", _named_entity),
    Way("spaces", _spaces),
    Way("line ends", _line_ends),
)
"""Ways that need no backslash."""


def _units(char: str) -> Iterator[str]:
    r"""`\u00e9`, pairs above the basic plane; `\ufffd` or `\u00c3\u00a9` where it was misread."""
    units = char.encode("utf-16-be", "surrogatepass")
    pairs = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    yield BACKSLASHES.join(f"u{hex_digits(unit)}" for unit in pairs)
    if ord(char) >= 128:
        yield f"u{hex_digits('fffd')}"
        yield BACKSLASHES.join(f"u00{hex_digits(f'{byte:02x}')}" for byte in _utf8(char))


def _braces(char: str) -> Iterator[str]:
    yield rf"u\{{0*{hex_digits(f'{ord(char):x}')}\}}"


def _long(char: str) -> Iterator[str]:
    yield f"U{hex_digits(f'{ord(char):08x}')}"


def _two_digits(char: str) -> Iterator[str]:
    r"""`\xe9`, and `\xc3\xa9` as Python writes bytes."""
    for encoded in _encodings(char):
        yield BACKSLASHES.join(f"x{hex_digits(f'{byte:02x}')}" for byte in encoded)


def _octal(char: str) -> Iterator[str]:
    for encoded in _encodings(char):
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
