"""Compressed data that stands as base64 within text: data URLs, and bodies in HAR files."""

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any, Final

import re2

SHORTEST_CHARS: Final = 32
_MARKS: Final = (
    rb"H4sI",  # gzip
    rb"KLUv[/_]",  # zstd
    rb"UEsD",  # zip
    rb"QlpoO",  # bzip2
    rb"/Td6WFoA",  # xz
    rb"eJ[wxyz]",  # zlib
    rb"eNo|eNr|eF[45]|eAE",
    rb"base64,",
)
_URL_SAFE: Final = re.compile(rb"[-_]")

Clean = Callable[[bytes], bytes | None]
"""What was packed without secrets. None: there were none, or it is nothing that is known."""


HINT: Final = "(?:" + "|".join(mark.decode() for mark in _MARKS) + ")[A-Za-z0-9+/_%-]{8}"
"""What is there whenever there is such data, as an expression."""


def _compile() -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return re2.compile(
        rb"(?:" + b"|".join(_MARKS) + rb")(?:[A-Za-z0-9+/_-]|\\/|%2[bBfF])+(?:=|%3[dD]){0,2}",
        options,
    )


_PATTERN: Final = _compile()


def clean_embedded(text: bytes, clean: Clean) -> tuple[bytes, int]:
    """The text with clean data in it, and how many pieces of data were changed."""
    out, at, count = [], 0, 0
    for match in _PATTERN.finditer(text):
        begins, ends = match.start(), match.end()
        if text.startswith(b"base64,", begins):
            begins += len(b"base64,")
        changed = _cleaned(text[begins:ends], clean) if ends - begins >= SHORTEST_CHARS else None
        if changed is not None:
            out += [text[at:begins], changed]
            at, count = ends, count + 1
    return (b"".join((*out, text[at:])), count) if count else (text, 0)


def _cleaned(encoded: bytes, clean: Clean) -> bytes | None:
    is_url_safe = _URL_SAFE.search(encoded) is not None
    plain = encoded.replace(rb"\/", b"/")
    for escaped, char in ((b"%2b", b"+"), (b"%2f", b"/"), (b"%3d", b"=")):
        plain = plain.replace(escaped, char).replace(escaped.upper(), char)
    plain = plain.replace(b"-", b"+").replace(b"_", b"/").rstrip(b"=")
    try:
        content = base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        return None
    changed = clean(content)
    if changed is None:
        return None
    packed = base64.b64encode(changed)
    return packed.translate(bytes.maketrans(b"+/", b"-_")) if is_url_safe else packed
