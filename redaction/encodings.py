r"""How encodings spell a character (`%2F`, `&quot;`, `\u00e9`, `=3D`), as parts of expressions.

Expressions are for RE2 in LATIN1: one code point for each byte. Repeats are never bounded: RE2
unrolls `{0,15}`, runs out of memory with ten secrets and then takes a hundred times as long.

Browsers, servers and libraries encode character by character and mix encodings, so each character
that is not a letter or digit may be in any of them, whatever its neighbours are in. Letters and
digits are encoded either not at all or all of them, which `decoders` handles.
"""

import html.entities
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Final, NamedTuple

PERCENT: Final = "%(?:25)*"
"""A percent sign, percent-encoded any number of times."""
BACKSLASH: Final = rf"(?:\\|{PERCENT}5[cC])"
BACKSLASHES: Final = f"{BACKSLASH}+"
"""One or more backslashes: escaping again doubles them."""
AMPERSAND: Final = rf"(?:{BACKSLASHES}(?:u0026|x26)|&|{PERCENT}26)"
HASH: Final = rf"(?:#|{PERCENT}23)"
SEMICOLON: Final = rf"(?:;|{PERCENT}3[bB])"
EQUALS: Final = rf"(?:=(?:3[dD])*|{PERCENT}3[dD])"
"""Quoted-printable's sign, itself encoded any number of times."""
LINE_END: Final = rf"(?:\r?\n|(?:{PERCENT}0[dD])?{PERCENT}0[aA]|(?:{BACKSLASHES}r)?{BACKSLASHES}n)"

GROWTH: Final = (
    rf"(?:\\{{8}}|(?:{PERCENT}5[cC]){{3}}|%(?:25){{3}}|(?:amp{SEMICOLON}){{3}}|=(?:3[dD]){{3}}"
    rf"|(?:[#xX{{\\]|%(?:25)*(?:23|5[cC]|7[bB]))0{{8}})(?:[\\%]|5[cC]?|25|3[dD]|amp;|0)*"
)
"""Matches where a character may take more bytes than `MOST_BYTES_PER_CHAR`.

It matches a whole run: matches within one would each search what follows it.
"""
MOST_BYTES_PER_CHAR: Final = 64

BETWEEN_BYTES: Final = rf"(?:[\s:,+\-]|{PERCENT}(?:20|2[bBcC]|3[aA]|0[aAdD]))"
"""Separators of hexadecimal bytes, as openssl, hexdump and debuggers print them."""

LETTERS_AND_DIGITS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
)
_LITERAL_BYTES: Final = frozenset(map(ord, LETTERS_AND_DIGITS))


def literal(encoded: bytes) -> str:
    """An expression for exactly these bytes."""
    return "".join(chr(byte) if byte in _LITERAL_BYTES else rf"\x{byte:02x}" for byte in encoded)


def limit_backslashes(form: str) -> str:
    r"""The form with one leading backslash where it allows several.

    A form that begins with `\\\\+` matches at each backslash of a run, which is quadratic.
    """
    for opening in ("", "(?:"):
        if form.startswith(opening + BACKSLASHES):
            return opening + BACKSLASH + form.removeprefix(opening + BACKSLASHES)
    return form


def hex_digits(digits: str) -> str:
    """An expression for the digits in either case."""
    return "".join(
        digit if digit.isdigit() else f"[{digit.lower()}{digit.upper()}]" for digit in digits
    )


def hex_byte(byte: bytes, *, after: str) -> str:
    """An expression for a byte in two hexadecimal digits after a prefix."""
    return after + hex_digits(byte.hex())


class Spelling(NamedTuple):
    """One spelling of a character."""

    name: str
    spell: Callable[[str], Iterator[str]]
    """Yields expressions for a character; none if it is never spelled so."""


def utf8(char: str) -> bytes:
    """Encode in UTF-8, lone surrogates included."""
    return char.encode("utf-8", "surrogatepass")


def encodings(text: str) -> tuple[bytes, ...]:
    """The text in UTF-8 and, if it differs, in Latin-1 or Windows-1252."""
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

ESCAPES: tuple[Spelling, ...] = (
    Spelling("unicode escape", _units),
    Spelling("unicode escape in braces", _braces),
    Spelling("unicode escape of eight digits", _long),
    Spelling("escape of two digits", _two_digits),
    Spelling("octal escape", _octal),
    Spelling("CSS escape", _css),
    Spelling("letter escape", _letter),
)
"""Spellings that follow a backslash."""


_REMEMBERED_CHARS: Final = 1024
_SLASH: Final = "\\"
_BEFORE_NAME: Final = f"{AMPERSAND}(?:amp{SEMICOLON})*"
_AFTER_NAME: Final = f"{SEMICOLON}?"
"""The syntax around an entity's name."""
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}".encode()


def normalize(text: str) -> str:
    """Normalize what encodings change at will: line ends and runs of backslashes."""
    # Escaping doubles backslashes, so how many there are beside each other says nothing.
    while "\\\\" in text:
        text = text.replace("\\\\", "\\")
    return text.replace("\r\n", "\n")


def mixed_expression(text: str) -> str:
    """An expression for the text with each character in any of its spellings."""
    return "".join(char_expressions(normalize(text)))


def char_expressions(text: str) -> Iterator[str]:
    """Yield the expression of each character of a normalized text.

    A leading backslash is joined with the character after it, which then yields an empty string.
    """
    is_joined = text[0] == _SLASH and len(text) > 1
    yield from (_after_backslash(text[1]), "") if is_joined else (_first(text[0]),)
    rest = text[1 + is_joined :]
    yield from (_character(char) + _quote_suffix(char) for char in rest[:-1])
    yield from map(_character, rest[-1:])


def _character(char: str) -> str:
    """A character in all spellings; any number of meaningless backslashes may precede it."""
    if char in LETTERS_AND_DIGITS:
        return char
    if char == "\n":
        return f"(?:{'|'.join((*_plain(char), *_between_lines(char)))})*"
    if char == _SLASH:
        return f"(?:{BACKSLASHES}(?:{_escaped(char)})?|{'|'.join(_plain(char))})"
    idle = "" if char.isalnum() else f"{BACKSLASH}*"
    return f"(?:{BACKSLASHES}(?:{_escaped(char)})|{idle}(?:{'|'.join(_plain(char))}))"


def _first(char: str) -> str:
    """The first character of a text; one backslash may precede it."""
    if char in LETTERS_AND_DIGITS:
        return char
    plain = "|".join(map(limit_backslashes, _plain(char)))
    if char == _SLASH:
        return f"(?:{BACKSLASH}(?:{_escaped(char)})?|{plain})"
    idle = "" if char.isalnum() else f"{BACKSLASH}?"
    return f"(?:{BACKSLASH}(?:{_escaped(char)})|{idle}(?:{plain}))"


def _after_backslash(char: str) -> str:
    """A leading backslash, the last one of a run, joined with the character after it."""
    bare = (_raw, _percent)
    others = _join_entities(
        form
        for spelling in PLAIN_SPELLINGS
        if spelling.spell not in bare
        for form in spelling.spell(_SLASH)
    )
    encoded = "|".join((f"{BACKSLASH}(?:{_escaped(_SLASH)})", *map(limit_backslashes, others)))
    return f"(?:{BACKSLASH}{_first(char)}|(?:{encoded}){_character(char)})"


def _quote_suffix(char: str) -> str:
    """What may follow a quote within a text; the first and last quote need nothing."""
    forms = [form for spelling in QUOTINGS for form in spelling.spell(char)]
    return f"(?:{'|'.join(forms)})?" if forms else ""


def _plain(char: str) -> list[str]:
    return _join_entities(form for spelling in PLAIN_SPELLINGS for form in spelling.spell(char))


def _join_entities(forms: Iterable[str]) -> list[str]:
    """Join the entities among the forms: the syntax around the names is most of their size."""
    found = list(forms)
    others = [form for form in found if not form.startswith(_BEFORE_NAME)]
    names = [
        form.removeprefix(_BEFORE_NAME).removesuffix(_AFTER_NAME)
        for form in found
        if form.startswith(_BEFORE_NAME)
    ]
    return [*others, _entity(f"(?:{'|'.join(names)})")] if names else others


def _escaped(char: str) -> str:
    return "|".join(form for spelling in ESCAPES for form in spelling.spell(char))


def _raw(char: str) -> Iterator[str]:
    yield literal(utf8(char))


def _latin1(char: str) -> Iterator[str]:
    """Latin-1 or Windows-1252, where the euro sign is one byte."""
    yield from map(literal, encodings(char)[1:])


def _replacement(char: str) -> Iterator[str]:
    """The replacement character, which decoders of UTF-8 put in place of Latin-1 bytes."""
    if ord(char) >= 128:
        yield literal(_REPLACEMENT)


def _misread(char: str) -> Iterator[str]:
    """Mojibake, such as `Ã¼` for `ü`: UTF-8 decoded as Latin-1 or Windows-1252."""
    if ord(char) >= 128:
        encoded = utf8(char)
        for charset in ("latin-1", "cp1252"):
            with suppress(UnicodeDecodeError):
                yield literal(encoded.decode(charset).encode())


def _percent(char: str) -> Iterator[str]:
    yield from _in_signs(char, before_each=PERCENT)


def _percent_units(char: str) -> Iterator[str]:
    """`%u20AC`, as JavaScript's `escape` writes characters above `%FF`."""
    if ord(char) >= 128:
        units = char.encode("utf-16-be", "surrogatepass")
        pairs = (units[at : at + 2].hex() for at in range(0, len(units), 2))
        yield "".join(f"{PERCENT}u{hex_digits(pair)}" for pair in pairs)


def _quoted_printable(char: str) -> Iterator[str]:
    yield from _in_signs(char, before_each=EQUALS)


def _in_signs(char: str, *, before_each: str) -> Iterator[str]:
    """The bytes in hexadecimal after a prefix; of several bytes some may be raw."""
    for encoded in encodings(char):
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
    """The character's names in HTML; a table of all characters would take 300 kB."""
    known = html.entities.html5.items()
    return tuple(name[:-1] for name, means in known if means == char and name.endswith(";"))


def _spaces(char: str) -> Iterator[str]:
    """Spellings of a space: a form's `+`, and the no-break space."""
    if char == " ":
        yield from (r"\+", rf"{PERCENT}2[bB]", r"\xc2\xa0", rf"{PERCENT}[aA]0", _entity("nbsp"))


PLAIN_SPELLINGS: tuple[Spelling, ...] = (
    Spelling("raw", _raw),
    Spelling("latin-1", _latin1),
    Spelling("replacement character", _replacement),
    Spelling("UTF-8 read as Latin-1", _misread),
    Spelling("percent", _percent),
    Spelling("percent and code units", _percent_units),
    Spelling("quoted-printable", _quoted_printable),
    Spelling("decimal entity", _decimal_entity),
    Spelling("hexadecimal entity", _hexadecimal_entity),
    Spelling("named entity", _named_entity),
    Spelling("spaces", _spaces),
)
"""Spellings that need no backslash."""


def _doubled(char: str) -> Iterator[str]:
    """Doubled quotes, as in CSV, SQL and YAML."""
    if char in _QUOTES:
        yield _character(char)


def _broken_off(char: str) -> Iterator[str]:
    r"""`'\''` and `'"'"'`, as in a shell's single quotes."""
    if char == "'":
        single, double = map(_character, _QUOTES)
        yield single * 2
        yield (double + single) * 2


def _between_lines(char: str) -> list[str]:
    return [form for spelling in LINE_BREAKS for form in spelling.spell(char)]


def _white_space(char: str) -> Iterator[str]:
    if char == "\n":
        yield from (*_any_of("\t\r\n "), rf"{BACKSLASHES}[nrt]", r"\xc2\xa0")


def _difference_signs(char: str) -> Iterator[str]:
    if char == "\n":
        yield from _any_of("+-")


def _list_signs(char: str) -> Iterator[str]:
    if char == "\n":
        yield from _any_of("\"',")


@lru_cache(maxsize=_REMEMBERED_CHARS)
def _any_of(chars: str) -> tuple[str, ...]:
    """Expressions for one of a few ASCII characters, in any spelling."""
    digits = f"(?:{'|'.join(hex_digits(f'{ord(char):02x}') for char in chars)})"
    numbers = "|".join(
        form for char in chars for form in (str(ord(char)), f"[xX]0*{hex_digits(f'{ord(char):x}')}")
    )
    names = "".join(f"|{name}" for char in chars for name in _entity_names(char))
    octal = "|".join(f"{ord(char):03o}" for char in chars)
    return (
        f"{BACKSLASH}*[{''.join(literal(char.encode()) for char in chars)}]",
        f"(?:{PERCENT}|{EQUALS}){digits}",
        _entity(f"(?:{HASH}0*(?:{numbers}){names})"),
        rf"{BACKSLASHES}(?:(?:u00|x|U000000|u\{{0*|0*){digits}[}} ]?|{octal})",
    )


_QUOTES: Final = "'\""
QUOTINGS: tuple[Spelling, ...] = (
    Spelling("doubled", _doubled),
    Spelling("broken off", _broken_off),
)
"""Spellings of a quote within quotes."""

LINE_BREAKS: tuple[Spelling, ...] = (
    Spelling("white space", _white_space),
    Spelling("signs of a difference", _difference_signs),
    Spelling("signs of a list", _list_signs),
)
"""What stands between two lines, any number of times; a field of one line has nothing there."""
