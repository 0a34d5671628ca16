"""What expressions for encoded text are made of: signs of the encodings, themselves encoded.

Everything here is for RE2 in LATIN1: one code point for each byte. Repeats are never bounded:
RE2 unrolls `{0,15}`, runs out of memory with ten secrets and then needs a hundred times as long.
"""

from typing import Final

PERCENT: Final = "%(?:25)*"
"""A percent sign, encoded any number of times."""
BACKSLASH: Final = rf"(?:\\|{PERCENT}5[cC])"
BACKSLASHES: Final = f"{BACKSLASH}+"
"""One for each time that a text was escaped, and more."""
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
"""Where a character takes more room than `MOST_BYTES_PER_CHAR`, one of these is.

It takes the whole of a run: found again within it, what may follow the run is looked for each time.
"""
MOST_BYTES_PER_CHAR: Final = 64

BETWEEN_BYTES: Final = rf"(?:[\s:,+\-]|{PERCENT}(?:20|2[bBcC]|3[aA]|0[aAdD]))"
"""As openssl, hexdump and debuggers part hexadecimal numbers."""

LETTERS_AND_DIGITS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
)
_LITERAL_BYTES: Final = frozenset(map(ord, LETTERS_AND_DIGITS))


def literal(encoded: bytes) -> str:
    """These bytes and no others."""
    return "".join(chr(byte) if byte in _LITERAL_BYTES else rf"\x{byte:02x}" for byte in encoded)


def begun(form: str) -> str:
    r"""The form as an expression may begin with it: with one backslash, where more may stand.

    What begins with `\\\\+` is found again at each backslash of a run, which is quadratic.
    """
    for opening in ("", "(?:"):
        if form.startswith(opening + BACKSLASHES):
            return opening + BACKSLASH + form.removeprefix(opening + BACKSLASHES)
    return form


def hex_digits(digits: str) -> str:
    """The digits in either case."""
    return "".join(
        digit if digit.isdigit() else f"[{digit.lower()}{digit.upper()}]" for digit in digits
    )


def hex_byte(byte: bytes, *, after: str) -> str:
    """The byte as a number of two digits after a sign."""
    return after + hex_digits(byte.hex())
