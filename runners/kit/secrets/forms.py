"""Every form in which a secret may turn up, as one regular expression for RE2 over bytes.

Browsers, servers and libraries encode character by character and mix their ways, so listing
whole encoded strings is not enough: each character may stand raw, percent-encoded (any number of
times), as an HTML entity or as a backslash escape, whatever its neighbours do. Beside that stand
the forms that change all characters at once: hexadecimal, and base64 in its three alignments.

What is sent is seldom the secret itself: `{{NAME}}` and the building of an address encode it, and
the target encodes and decodes what it got. So each text that goes out is looked for like a secret.
"""

import base64
import html.entities
import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Final
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from runners.kit.secrets.job_secrets import SHORTEST_CHARS
from runners.kit.variables import UNENCODED

MIXED_LIMIT_CHARS: Final = 256
"""Longer secrets (keys, certificates) are looked for in whole encoded forms only."""

_REMEMBERED_CHARS: Final = 1024
_VISIBLE_ASCII: Final = "".join(map(chr, range(0x21, 0x7F)))
"""What an address that is built of parts keeps as it is."""
_PERCENT: Final = "%(?:25)*"
_BACKSLASH: Final = rf"(?:\\|{_PERCENT}5[cC])"
_AMPERSAND: Final = rf"(?:&|{_PERCENT}26|{_BACKSLASH}+u0026)"
_HASH: Final = rf"(?:#|{_PERCENT}23)"
_SEMICOLON: Final = rf"(?:;|{_PERCENT}3[bB])"
_BASE64_EDGE: Final = rf"(?:[A-Za-z0-9+/_\-]|{_PERCENT}2[bBfF])"
"""A base64 character that holds bits of the secret and of its neighbour."""
_BASE64_CHARS: Final = {
    "+": rf"(?:[+\-]|{_PERCENT}2[bB]|{_BACKSLASH}+u002[bB])",
    "/": rf"(?:{_BACKSLASH}*/|_|{_PERCENT}2[fF])",
}
_LITERAL_BYTES: Final = frozenset(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
)


def forms(secret: str) -> str:
    """The expression, with one code point for each byte (RE2's LATIN1)."""
    return "|".join(dict.fromkeys(_forms(secret)))


def _forms(secret: str) -> Iterator[str]:
    variants = _variants(secret)
    if len(secret) <= MIXED_LIMIT_CHARS:
        for text in sent_forms(secret):
            yield "".join(map(_character, text))
    else:
        yield from (_literal(variant) for variant in variants)
    for variant in variants:
        yield "".join(_hex_digits(f"{byte:02x}") for byte in variant)
        yield from _base64_forms(variant)


def sent_forms(secret: str) -> tuple[str, ...]:
    """The secret, each text that a request makes of it, and what the target reads in those."""
    sent = (_quote(secret, UNENCODED), _quote(secret, _VISIBLE_ASCII), _quote(secret))
    return tuple(dict.fromkeys((secret, *sent, json.dumps(secret)[1:-1], *_decoded(secret))))


def _decoded(secret: str) -> Iterator[str]:
    """What a target makes of a secret that came as it is where it expected it encoded."""
    for text in (unquote(secret), unquote_plus(secret), secret.replace("+", " ")):
        if text != secret and len(text.strip()) >= SHORTEST_CHARS:
            yield text.strip()


def _variants(secret: str) -> tuple[bytes, ...]:
    """What is encoded as a whole: a text that is sent, or one that it was written into before."""
    texts = dict.fromkeys(form for sent in sent_forms(secret) for form in written_forms(sent))
    return tuple(text.encode("utf-8", "surrogatepass") for text in texts)


def written_forms(text: str) -> tuple[str, ...]:
    """The text as it stands in JSON, in an address and in a form."""
    escaped = json.dumps(text, ensure_ascii=False)[1:-1]
    forms = (text, escaped, json.dumps(text)[1:-1], _quote(text), _quote_plus(text))
    return tuple(dict.fromkeys(forms))


def _quote(text: str, safe: str = "") -> str:
    return quote(text, safe=safe, errors="surrogatepass")


def _quote_plus(text: str) -> str:
    return quote_plus(text, errors="surrogatepass")


def _character(char: str) -> str:
    encoded = char.encode("utf-8", "surrogatepass")
    ways = [_percent(encoded), _entity(char), *_escapes(char), *_SPECIAL.get(char, ())]
    if char == "\\":
        ways.append(f"{_BACKSLASH}+")
    else:
        # JSON and shells put backslashes before whatever is no letter or digit.
        before = "" if char.isalnum() else f"{_BACKSLASH}*"
        ways.append(before + _literal(encoded))
    return f"(?:{'|'.join(ways)})"


def _literal(text: bytes) -> str:
    return "".join(chr(byte) if byte in _LITERAL_BYTES else rf"\x{byte:02x}" for byte in text)


def _percent(encoded: bytes) -> str:
    return "".join(_PERCENT + _hex_digits(f"{byte:02x}") for byte in encoded)


def _entity(char: str) -> str:
    number = ord(char)
    names = [f"{_HASH}0*{number}", f"{_HASH}[xX]0*{_hex_digits(f'{number:x}')}"]
    names += _entity_names(char)
    return rf"{_AMPERSAND}(?:amp{_SEMICOLON})*(?:{'|'.join(names)}){_SEMICOLON}"


def _escapes(char: str) -> Iterator[str]:
    r"""`\u00e9` (in pairs above the basic plane), `\u{e9}` and `\xe9`."""
    units = char.encode("utf-16-be", "surrogatepass")
    pairs = (units[at : at + 2].hex() for at in range(0, len(units), 2))
    yield "".join(rf"{_BACKSLASH}+u{_hex_digits(unit)}" for unit in pairs)
    yield rf"{_BACKSLASH}+u\{{0*{_hex_digits(f'{ord(char):x}')}\}}"
    if ord(char) < 256:
        yield rf"{_BACKSLASH}+x{_hex_digits(f'{ord(char):02x}')}"


def _hex_digits(digits: str) -> str:
    """The digits in either case."""
    return "".join(
        digit if digit.isdigit() else f"[{digit.lower()}{digit.upper()}]" for digit in digits
    )


def _base64_forms(encoded: bytes) -> Iterator[str]:
    """The secret at each of the three places at which it may start among other bytes."""
    for offset, head in enumerate((0, 2, 3)):
        whole = base64.b64encode(b"\0" * offset + encoded).decode().rstrip("=")
        cut = (len(encoded) + offset) % 3 != 0
        core = whole[head : -1 if cut else None]
        start, end = _BASE64_EDGE if offset else "", _BASE64_EDGE if cut else ""
        yield start + "".join(_BASE64_CHARS.get(char, char) for char in core) + end


@lru_cache(maxsize=_REMEMBERED_CHARS)
def _entity_names(char: str) -> tuple[str, ...]:
    """What HTML calls the character. Looked for one by one: a table of all holds 300 kB."""
    known = html.entities.html5.items()
    return tuple(name[:-1] for name, means in known if means == char and name.endswith(";"))


_SPECIAL: Final[dict[str, tuple[str, ...]]] = {
    " ": (r"\+", rf"{_PERCENT}2[bB]", r"\xc2\xa0", rf"{_AMPERSAND}nbsp{_SEMICOLON}"),
    "\n": (rf"{_BACKSLASH}+n", r"\r\n", rf"{_BACKSLASH}+r{_BACKSLASH}+n"),
    "\r": (rf"{_BACKSLASH}+r",),
    "\t": (rf"{_BACKSLASH}+t",),
    "\b": (rf"{_BACKSLASH}+b",),
    "\f": (rf"{_BACKSLASH}+f",),
}
"""Ways that only these characters are written in."""
