"""Every form in which a secret may turn up, as expressions for RE2 over bytes.

What is sent is seldom the secret itself: `{{NAME}}` and the building of an address encode it, and
the target encodes and decodes what it got. Each character may be written in each of its ways
(`characters`), pieces stand alone (`pieces`), and some encodings change all at once (`whole`).
"""

import html
import json
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, quote_plus

from runners.kit.secrets import whole
from runners.kit.secrets.backslashes import encodings
from runners.kit.secrets.characters import alike, each_mixed, mixed
from runners.kit.secrets.following import Form, char_parts, form
from runners.kit.secrets.pieces import decoded, pieces
from runners.kit.variables import UNENCODED

MIXED_LIMIT_CHARS: Final = 8192
"""Longer secrets are looked for as plain text in their usual forms, and by the line."""
COMPILED_CHARS: Final = 48
"""Forms of longer secrets are not compiled as a whole: ten of 300 characters would take 70 MB."""
_FOR_HTML: Final = re.compile("[<>&]")
_VISIBLE_ASCII: Final = "".join(map(chr, range(0x21, 0x7F)))
"""What an address that is built of parts keeps as it is."""


def text_forms(secret: str) -> Iterator[str]:
    """The secret and its pieces, character by character; one code point for each byte."""
    if len(secret) <= COMPILED_CHARS:
        yield from map(mixed, pieces(secret))


def long_text_forms(secret: str) -> Iterator[Form]:
    """The same of a longer one."""
    if len(secret) > COMPILED_CHARS:
        for piece in map(alike, pieces(secret)):
            yield form(char_parts(piece, each_mixed(piece)))


def whole_forms(secret: str) -> Iterator[str]:
    """The secret where an encoding changes all of it at once."""
    if len(secret) <= COMPILED_CHARS:
        yield from (one.whole for one in _whole_forms(secret))


def long_whole_forms(secret: str) -> Iterator[Form]:
    """The same of a longer one."""
    if len(secret) > COMPILED_CHARS:
        yield from _whole_forms(secret)


def _whole_forms(secret: str) -> Iterator[Form]:
    written = whole_written(secret)
    for coding in whole.CODINGS:
        yield from coding.forms(secret, written)


def whole_texts(secret: str) -> tuple[str, ...]:
    """What is encoded when an encoding changes all of the secret at once."""
    texts = (*written_forms(secret), *decoded(secret), *_further_forms(secret))
    return tuple(dict.fromkeys(texts))


def whole_written(secret: str) -> tuple[bytes, ...]:
    """The bytes of these texts, in each way in which a character may be a byte or some."""
    written = (encoded for text in whole_texts(secret) for encoded in encodings(text))
    return tuple(dict.fromkeys(written))


def written_forms(text: str) -> tuple[str, ...]:
    """The text as it usually stands in JSON, in an address and in a form."""
    forms = (
        text,
        json.dumps(text, ensure_ascii=False)[1:-1],
        json.dumps(text)[1:-1],
        _quote(text, UNENCODED),
        _quote(text, _VISIBLE_ASCII),
        _quote(text),
        quote_plus(text, errors="surrogatepass"),
    )
    return tuple(dict.fromkeys(forms))


def _further_forms(text: str) -> Iterator[str]:
    """For HTML, and for JSON in HTML. Where all is ASCII, `views` finds them by themselves."""
    if not text.isascii():
        yield html.escape(text)
        escaped = json.dumps(text, ensure_ascii=False)[1:-1]
        yield _FOR_HTML.sub(lambda found: f"\\u{ord(found.group()):04x}", escaped)


def usual_forms(secret: str) -> tuple[str, ...]:
    """Texts that the secret is in most cases found as."""
    # Bytes of the environment that are no UTF-8 come as surrogates, which no text can hold.
    secret = secret.encode("utf-8", "replace").decode()
    sent = (*written_forms(secret), *decoded(secret))
    return tuple(dict.fromkeys(form for text in sent for form in written_forms(text)))


def _quote(text: str, safe: str = "") -> str:
    return quote(text, safe=safe, errors="surrogatepass")
