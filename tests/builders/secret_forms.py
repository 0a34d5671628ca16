"""A case for each form of the scrubber's registries: the secret in that form only."""

import base64
from typing import NamedTuple

from redaction import decoders, encodings, forms, policy

REGISTRIES = {
    "plain ways": (encodings, "PLAIN_SPELLINGS"),
    "escapes": (encodings, "ESCAPES"),
    "quotes": (encodings, "QUOTINGS"),
    "between lines": (encodings, "LINE_BREAKS"),
    "parts": (policy, "PARTS"),
    "cuts": (forms, "CUTS"),
    "codings": (forms, "CODINGS"),
    "undoings": (decoders, "DECODERS"),
}


class Case(NamedTuple):
    """A secret and a text that has it in one form only."""

    secret: str
    text: bytes


def wide(text: str) -> bytes:
    return text.encode("utf-16-le")


def b64(text: bytes) -> bytes:
    return base64.b64encode(text)


LONG = "Tr0ub4dor-and-the-correct-horse-battery-staple"
ADDRESS = "https://shop.example/of/many/folders/and/some-token/in-it"
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
MANY = "".join(map(str, range(2000, 5000)))
CASES: dict[str, dict[str, Case]] = {
    "plain ways": {
        "raw": Case("hunter-two", b"hunter-two"),
        "latin-1": Case("hüntér", "hüntér".encode("latin-1")),
        "replacement character": Case("hüntér", "h\ufffdnt\ufffdr".encode()),
        "UTF-8 read as Latin-1": Case("hüntér", "hÃ¼ntÃ©r".encode()),
        "percent": Case("hunt/er", b"hunt%2fer"),
        "percent and code units": Case("hunt€er", b"hunt%u20ACer"),
        "quoted-printable": Case("hunt=er", b"hunt=3Der"),
        "decimal entity": Case("hunt<er", b"hunt&#60;er"),
        "hexadecimal entity": Case("hunt<er", b"hunt&#x3C;er"),
        "named entity": Case("hunt<er", b"hunt&lt;er"),
        "spaces": Case("hunt er", b"hunt+er"),
    },
    "escapes": {
        "unicode escape": Case("hunt<er", rb"hunt\u003cer"),
        "unicode escape in braces": Case("hunt<er", rb"hunt\u{3c}er"),
        "unicode escape of eight digits": Case("hunt<er", rb"hunt\U0000003cer"),
        "escape of two digits": Case("hunt<er", rb"hunt\x3cer"),
        "octal escape": Case("hunt<er", rb"hunt\074er"),
        "CSS escape": Case("hunt<er", rb"hunt\3c er"),
        "letter escape": Case("hunt\ter", rb"hunt\ter"),
    },
    "quotes": {
        "doubled": Case('hunt"er', b'hunt""er'),
        "broken off": Case("hunt'er", rb"hunt'\''er"),
    },
    "between lines": {
        "white space": Case("abc\n123\nxyz", b"abc\r\n  123\txyz"),
        "signs of a difference": Case("abc\n123\nxyz", b"- abc\n- 123\n+ xyz"),
        "signs of a list": Case("abc\n123\nxyz", b"'abc',\n'123', 'xyz'"),
    },
    "parts": {
        "lines": Case("hunter-two\nab", b"hunter-two"),
        "values in JSON": Case('{"a":{"b":["hunter-two"]}}', b"hunter-two"),
        "values in YAML or KEY=value": Case("a: 1\nb: 'hunter-two' # c", b"hunter-two"),
        "chunks of long values": Case(MANY, MANY[:4096].encode()),
    },
    "cuts": {
        "decoded once more": Case("hunt%2Fer+two", b"hunt/er two"),
        "fragments of a URL": Case("hunter-two&correct=horse", b"hunter-two"),
        "ends in previews": Case(LONG, LONG[-16:].encode()),
        "parts of a JWT": Case(TOKEN, TOKEN.split(".")[1].encode()),
        "split at a colon": Case("ab:hunter-two", b"unter-two"),
        "first of many bytes": Case(ADDRESS, ADDRESS[:50].encode()),
    },
    "codings": {
        "base64": Case("hünter", b64("hünter".encode())),
        "base64 of UTF-16": Case("hunt", b64(wide("hunt"))),
        "hexadecimal": Case("hünt", "hünt".encode().hex().encode()),
        "UTF-16 and UTF-32": Case("hunt", wide("hunt")),
        "UTF-16 misread": Case("hünt", wide("hünt").decode("utf-8", "replace").encode()),
    },
    "undoings": {
        "percent": Case("hunter", b"%68%75%6e%74%65%72"),
        "entities": Case("hunter", b"&#104;&#117;&#110;&#116;&#101;&#114;"),
        "escapes": Case("hunter", rb"\x68\u0075\156\u{74}\x65\162"),
        "CSS": Case("hunter", rb"\68 \75 \6e \74 \65 \72 "),
        "quoted-printable": Case("hunter", b"=68=75=6e=74=65=72"),
        "colours and soft line ends": Case("hunter", b"hun\x1b[27mter"),
        "base64": Case("hunter-two", b64(b64(b"hunter-two"))),
        "hexadecimal": Case("hunter-two", b64(b"hunter-two").hex().encode()),
        "wide characters": Case("hunter-two", wide(b64(b"hunter-two").decode())),
        "lists": Case("hunter", b"['h', 'u',\n  'n', 't', 'e', 'r']"),
    },
}
