"""Encodings that a secret may be written in, each with what undoes it; none of the scrubber's."""

import base64
import binascii
import html
import json
import quopri
import re
from collections.abc import Callable, Sequence
from http.cookies import SimpleCookie
from typing import NamedTuple
from urllib.parse import quote, quote_plus, unquote_plus, unquote_to_bytes

import msgspec


class Encoding(NamedTuple):
    """One encoding."""

    name: str
    encode: Callable[[bytes], bytes]
    decode: Callable[[bytes], bytes]
    is_of_text: bool = True
    """Whether it takes UTF-8 only."""
    is_to_text: bool = True
    """Whether it makes UTF-8."""
    is_by_character: bool = True
    """Whether each character is encoded by itself, whatever stands beside it."""


def _text(encode: Callable[[str], str]) -> Callable[[bytes], bytes]:
    return lambda data: encode(data.decode()).encode()


def _each(encode: Callable[[str], str]) -> Callable[[bytes], bytes]:
    return _text(lambda text: "".join(map(encode, text)))


def _lower(text: str) -> str:
    return re.sub(r"%..", lambda found: found.group().lower(), text)


def _from_json(text: str) -> str:
    return str(json.loads(f'"{text}"'))


def _unit_escapes(char: str) -> str:
    units = char.encode("utf-16-be").hex()
    return "".join(rf"\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _numbers(pattern: str, base: int) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, lambda found: chr(int(found.group(1), base)), text)


def _byte_escapes(pattern: bytes, base: int) -> Callable[[bytes], bytes]:
    return lambda data: re.sub(pattern, lambda found: bytes([int(found.group(1), base)]), data)


def _from_base64(data: bytes) -> bytes:
    letters = re.sub(rb"[=\s]", b"", data).replace(b"-", b"+").replace(b"_", b"/")
    return base64.b64decode(letters + b"=" * (-len(letters) % 4), validate=True)


def _from_hex(data: bytes) -> bytes:
    return bytes.fromhex(re.sub(r"0x|[:,\s]", "", data.decode()))


def _wrapped(data: bytes) -> bytes:
    return base64.encodebytes(data).replace(b"\n", b"\r\n")


def _wide(codec: str) -> Encoding:
    return Encoding(
        codec,
        lambda data: data.decode().encode(codec),
        lambda data: data.decode(codec, "replace").encode(),
        is_to_text=False,
    )


_CODE = "\x1b[27m"

BY_CHARACTER: tuple[Encoding, ...] = (
    Encoding("raw", bytes, bytes),
    Encoding("component", _text(lambda text: quote(text, safe="-_.!~*'()")), unquote_to_bytes),
    Encoding("path", _text(lambda text: quote(text, safe="/:@!$&'()*+,;=~")), unquote_to_bytes),
    Encoding("lower percent", _text(lambda text: _lower(quote(text, safe=""))), unquote_to_bytes),
    Encoding("form", _text(quote_plus), _text(unquote_plus)),
    Encoding(
        "percent everywhere",
        lambda data: b"".join(b"%%%02X" % byte for byte in data),
        unquote_to_bytes,
        is_of_text=False,
    ),
    Encoding("JSON", _text(lambda text: json.dumps(text)[1:-1]), _text(_from_json)),
    Encoding(
        "JSON in UTF-8",
        _text(lambda text: json.dumps(text, ensure_ascii=False)[1:-1]),
        _text(_from_json),
    ),
    Encoding(
        "JSON of PHP",
        _text(lambda text: json.dumps(text)[1:-1].replace("/", r"\/")),
        _text(_from_json),
    ),
    Encoding(
        "JSON of Go",
        _text(
            lambda text: re.sub(
                "[<>&]",
                lambda found: _unit_escapes(found.group()),
                msgspec.json.encode(text).decode()[1:-1],
            )
        ),
        _text(_from_json),
    ),
    Encoding("units everywhere", _each(_unit_escapes), _text(_from_json)),
    Encoding(
        "braces",
        _each(lambda char: rf"\u{{{ord(char):x}}}"),
        _text(_numbers(r"\\u\{([0-9a-f]+)\}", 16)),
    ),
    Encoding(
        "two digits",
        lambda data: b"".join(b"\\x%02x" % byte for byte in data),
        _byte_escapes(rb"\\x(..)", 16),
        is_of_text=False,
    ),
    Encoding(
        "octal",
        lambda data: b"".join(b"\\%03o" % byte for byte in data),
        _byte_escapes(rb"\\([0-7]{3})", 8),
        is_of_text=False,
    ),
    Encoding("HTML", _text(html.escape), _text(html.unescape)),
    Encoding("decimal", _each(lambda char: f"&#{ord(char)};"), _text(html.unescape)),
    Encoding("hexadecimal", _each(lambda char: f"&#x{ord(char):X};"), _text(html.unescape)),
    Encoding(
        "CSS", _each(lambda char: rf"\{ord(char):x} "), _text(_numbers(r"\\([0-9a-f]+) ", 16))
    ),
    Encoding(
        "colours",
        _each(lambda char: char + _CODE),
        lambda data: data.replace(_CODE.encode(), b""),
    ),
)

AS_A_WHOLE: tuple[Encoding, ...] = tuple(
    encoding._replace(is_by_character=False)
    for encoding in (
        Encoding(
            "Python's bytes",
            lambda data: repr(data + b"'")[2:-2].encode(),
            lambda data: data.decode("unicode_escape").encode("latin-1"),
            is_of_text=False,
        ),
        Encoding("base64", base64.b64encode, _from_base64, is_of_text=False),
        Encoding(
            "base64url",
            lambda data: base64.urlsafe_b64encode(data).rstrip(b"="),
            _from_base64,
            is_of_text=False,
        ),
        Encoding("base64 in lines", _wrapped, _from_base64, is_of_text=False),
        Encoding("hex", binascii.hexlify, _from_hex, is_of_text=False),
        Encoding("HEX", lambda data: data.hex().upper().encode(), _from_hex, is_of_text=False),
        Encoding("openssl", lambda data: data.hex(":").encode(), _from_hex, is_of_text=False),
        Encoding("hexdump", lambda data: data.hex(" ").encode(), _from_hex, is_of_text=False),
        Encoding(
            "quoted-printable",
            lambda data: binascii.b2a_qp(data, istext=False),
            quopri.decodestring,
            is_of_text=False,
        ),
        Encoding(
            "cookie",
            _text(lambda text: SimpleCookie().value_encode(text)[1]),
            _text(lambda text: str(SimpleCookie().value_decode(text)[0])),
        ),
        _wide("utf-16-le"),
        _wide("utf-16-be"),
    )
)

ENCODINGS: tuple[Encoding, ...] = (*BY_CHARACTER, *AS_A_WHOLE)

NOT_OVER_WHOLE = {"quoted-printable", "cookie"}
"""They cut or quote the lines of what is encoded as a whole, which nobody does."""


def encoded(text: str, chain: Sequence[Encoding]) -> bytes:
    """The text in these encodings, the first of them innermost."""
    data = text.encode()
    for encoding in chain:
        data = encoding.encode(data)
    return data


def decoded(data: bytes, chain: Sequence[Encoding]) -> bytes:
    """What it is without them."""
    for encoding in reversed(chain):
        data = encoding.decode(data)
    return data


def fits(chain: Sequence[Encoding], secret: str) -> bool:
    """Whether each takes what the one before makes, and it is what somebody would do."""
    for place, encoding in enumerate(chain):
        below = chain[:place]
        has_whole = any(not other.is_by_character for other in below)
        if encoding.is_of_text and not all(other.is_to_text for other in below[-1:]):
            return False
        if has_whole and encoding.name in NOT_OVER_WHOLE:
            return False
        if encoding.name == "cookie" and any(other.name == "HTML" for other in below):
            return False
        if not encoding.is_by_character and any(other.name == "colours" for other in below):
            return False
        if not encoding.is_to_text and below and not secret.isascii():
            return False
    return True
