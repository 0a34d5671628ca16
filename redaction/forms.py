"""The forms that a secret takes in encoded text, as RE2 expressions over bytes.

What is sent is seldom the secret itself: templates and URLs encode it, and the target encodes and
decodes what it got. Each character may have any of its spellings (`encodings`), pieces of a secret
are secret by themselves (`pieces`), and some encodings change all of it at once (`CODINGS`).

A form has hundreds of spellings, so a prefilter searches for its core, a few characters, with a
fraction of the states and memory; the forms are matched only around what it finds.

Secrets that were typed letter by letter are also found by their prefixes (`Prefixes`), since pages
show each state of a field; one form matches the longest prefix.
"""

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Final, NamedTuple
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from contract.templates import UNENCODED
from redaction.compiled import Form, Part, char_parts, contains_form, part, whole_form
from redaction.decoders import Kind, sign_runs
from redaction.encodings import (
    BACKSLASHES,
    BETWEEN_BYTES,
    LETTERS_AND_DIGITS,
    PERCENT,
    char_expressions,
    encodings,
    hex_digits,
    literal,
    mixed_expression,
    normalize,
)
from redaction.policy import CHUNKED_FROM_CHARS, SHORTEST_CHARS, is_usable, shortest_prefix

MIXED_LIMIT_CHARS: Final = CHUNKED_FROM_CHARS
"""Longer secrets are searched for as plain text in their usual forms, by lines and by chunks."""
COMPILED_CHARS: Final = 48
"""Forms of longer secrets are compiled in segments: ten of 300 characters would take 70 MB."""
_FOR_HTML: Final = re.compile("[<>&]")
_VISIBLE_ASCII: Final = "".join(map(chr, range(0x21, 0x7F)))
"""Characters that a URL built of parts does not encode."""


def text_forms(secret: str) -> Iterator[str]:
    """Expressions for a short secret and its pieces, character by character."""
    if len(secret) <= COMPILED_CHARS:
        yield from map(mixed_expression, pieces(secret))


def long_text_forms(secret: str) -> Iterator[Form]:
    """A long secret and its pieces, character by character."""
    if len(secret) > COMPILED_CHARS:
        for piece in map(normalize, pieces(secret)):
            yield whole_form(char_parts(piece, char_expressions(piece)))


def whole_forms(secret: str) -> Iterator[str]:
    """Expressions for a short secret in encodings that change all of it at once."""
    if len(secret) <= COMPILED_CHARS:
        yield from (one.whole for one in _whole_forms(secret))


def long_whole_forms(secret: str) -> Iterator[Form]:
    """A long secret in encodings that change all of it at once."""
    if len(secret) > COMPILED_CHARS:
        yield from _whole_forms(secret)


def _whole_forms(secret: str) -> Iterator[Form]:
    written = whole_bytes(secret)
    for coding in CODINGS:
        yield from coding.forms(secret, written)


def whole_texts(secret: str) -> tuple[str, ...]:
    """The texts that are encoded where an encoding changes all of the secret."""
    texts = (*written_forms(secret), *decode(secret), *_further_forms(secret))
    return tuple(dict.fromkeys(texts))


def whole_bytes(secret: str) -> tuple[bytes, ...]:
    """The bytes of these texts in each character set."""
    written = (encoded for text in whole_texts(secret) for encoded in encodings(text))
    return tuple(dict.fromkeys(written))


def written_forms(text: str) -> tuple[str, ...]:
    """The text as it is, in JSON, in a URL and in a form."""
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
    """The text for HTML and for JSON in HTML; ASCII texts are found by decoding."""
    if not text.isascii():
        yield html.escape(text)
        escaped = json.dumps(text, ensure_ascii=False)[1:-1]
        yield _FOR_HTML.sub(lambda found: f"\\u{ord(found.group()):04x}", escaped)


def usual_forms(secret: str) -> tuple[str, ...]:
    """The texts in which the secret is usually found."""
    # Bytes of the environment that are no UTF-8 come as surrogates, which no text can hold.
    secret = secret.encode("utf-8", "replace").decode()
    sent = (*written_forms(secret), *decode(secret))
    return tuple(dict.fromkeys(form for text in sent for form in written_forms(text)))


def cut_forms(secret: str) -> Iterator[tuple[str, int]]:
    """The texts that a text may be cut in, and how many characters of each tell the secret."""
    yield from ((form, SHORTEST_CHARS) for form in usual_forms(secret))
    encoded = secret.encode("utf-8", "replace")
    for letters, _ in base64_letters(encoded):
        for form in dict.fromkeys((letters, letters.replace("+", "-").replace("/", "_"))):
            yield form, SHORTEST_CHARS * 8 // 6
    for digits in (encoded.hex(), encoded.hex().upper(), encoded.hex(" ")):
        yield digits, 2 * SHORTEST_CHARS
    units = secret.encode("utf-16-be", "replace").hex(" ", 2)
    for form in dict.fromkeys((units, units.upper())):
        yield f"\\u{form.replace(' ', chr(92) + 'u')}", len("\\u0000") * SHORTEST_CHARS


def _quote(text: str, safe: str = "") -> str:
    return quote(text, safe=safe, errors="surrogatepass")


WIDE_CODECS: Final = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")

BETWEEN: Final = r"[\s:,\-]*(?:0x)?"
"""Separators of hexadecimal bytes, as openssl, hexdump and debuggers print them."""
BASE64_EDGE: Final = rf"(?:[A-Za-z0-9+/_\-]|{PERCENT}2[bBfF])"
"""A base64 letter with bits of the secret and of its neighbour."""
BASE64_HEADS: Final = (0, 2, 3)
"""How many leading letters hold bits of the bytes before, at each of the three alignments."""
BASE64_CHARS: Final = {
    "+": rf"(?:{BACKSLASHES}u002[bB]|[+\-]|{PERCENT}2[bB])",
    "/": rf"(?:{BACKSLASHES}/|/|_|{PERCENT}2[fF])",
}
_HEX: Final = re.compile(rf"(?:(?:0x)?[0-9A-Fa-f]{{2}}{BETWEEN_BYTES}*)+".encode())
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_\-%\\]+")


class Coding(NamedTuple):
    """An encoding that changes all of a text at once."""

    name: str
    parts: Callable[[str, tuple[bytes, ...]], Iterator[Iterable[Part]]]
    """Yields the parts of each form of a secret that has these bytes."""
    encode: Callable[[str, bytes], Iterator[bytes]]
    """Yields the usual spellings; a sign in all of them is in every other spelling too."""
    has_gaps: bool = False
    """Whether separators may be between the bytes, so that a core alone is not enough."""

    def expressions(self, secret: str, written: tuple[bytes, ...]) -> Iterator[str]:
        """Expressions for the secret in this encoding."""
        yield from (form.whole for form in self.forms(secret, written))

    def forms(self, secret: str, written: tuple[bytes, ...]) -> Iterator[Form]:
        """The secret's forms in this encoding, part by part."""
        yield from (whole_form(parts) for parts in self.parts(secret, written))


def _base64(_: str, written: tuple[bytes, ...]) -> Iterator[Iterable[Part]]:
    for encoded in written:
        yield from _base64_places(encoded)


def _base64_usual(_: str, encoded: bytes) -> Iterator[bytes]:
    yield from (letters.encode() for letters, _ in base64_letters(encoded))


def _utf16_base64(secret: str, _: tuple[bytes, ...]) -> Iterator[Iterable[Part]]:
    for codec in WIDE_CODECS[:2]:
        yield from _base64_places(secret.encode(codec, "surrogatepass"))


def _utf16_base64_usual(secret: str, _: bytes) -> Iterator[bytes]:
    for codec in WIDE_CODECS[:2]:
        yield from _base64_usual(secret, secret.encode(codec, "surrogatepass"))


def _base64_places(encoded: bytes) -> Iterator[Iterable[Part]]:
    for letters, is_cut in base64_letters(encoded):
        yield (*letter_parts(letters), *[part(BASE64_EDGE)] * is_cut)


def base64_letters(encoded: bytes) -> Iterator[tuple[str, bool]]:
    """The letters of the bytes at each of base64's three alignments.

    Also whether a further letter has bits of both the last byte and the next one.
    """
    for offset, head in enumerate(BASE64_HEADS):
        whole = base64.b64encode(b"\0" * offset + encoded).decode().rstrip("=")
        is_cut = (len(encoded) + offset) % 3 != 0
        yield whole[head : -1 if is_cut else None], is_cut


def letter_parts(letters: str) -> Iterator[Part]:
    """Letters of base64 one by one."""
    for letter in letters:
        special = BASE64_CHARS.get(letter)
        yield part(letter, letter.encode()) if special is None else part(special)


def hex_parts(encoded: bytes) -> Iterator[Part]:
    """Bytes in hexadecimal, with separators or without."""
    for number, byte in enumerate(encoded):
        digits = f"{byte:02x}"
        yield part((BETWEEN if number else "") + hex_digits(digits), digits.encode())


def byte_parts(pieces: Iterable[bytes]) -> Iterator[Part]:
    """Raw bytes."""
    yield from (part(literal(piece), piece) for piece in pieces)


def _hexadecimal(secret: str, written: tuple[bytes, ...]) -> Iterator[Iterable[Part]]:
    yield from map(hex_parts, (*written, *_unlike_ascii(secret)))


def _hexadecimal_usual(secret: str, encoded: bytes) -> Iterator[bytes]:
    written = (encoded, *_unlike_ascii(secret))
    yield from (one.hex(*apart).encode() for one in written for apart in ((), (" ",)))


def _unlike_ascii(secret: str) -> Iterator[bytes]:
    """A non-ASCII secret in UTF-16, whose zeros are no reliable sign."""
    if not secret.isascii():
        yield from (secret.encode(codec, "surrogatepass") for codec in WIDE_CODECS[:2])


def _wide(secret: str, _: tuple[bytes, ...]) -> Iterator[Iterable[Part]]:
    for codec in WIDE_CODECS:
        yield byte_parts(char.encode(codec, "surrogatepass") for char in secret)


def _wide_usual(secret: str, _: bytes) -> Iterator[bytes]:
    for codec in WIDE_CODECS:
        yield secret.encode(codec, "surrogatepass")


def _misread(secret: str, _: tuple[bytes, ...]) -> Iterator[Iterable[Part]]:
    for misread in _misread_usual(secret, b""):
        yield byte_parts(misread[at : at + 1] for at in range(len(misread)))


def _misread_usual(secret: str, _: bytes) -> Iterator[bytes]:
    """UTF-16 and UTF-32 decoded as UTF-8, which loses some bytes, or as Latin-1."""
    if not secret.isascii():
        for codec in WIDE_CODECS:
            encoded = secret.encode(codec, "surrogatepass")
            yield encoded.decode("utf-8", "replace").encode()
            yield encoded.decode("latin-1").encode()


def guess_kind(covered: bytes) -> Kind:
    """Guess the encoding of a match by its characters."""
    if _HEX.fullmatch(covered):
        return Kind.HEX
    return Kind.BASE64 if _BASE64.fullmatch(covered) else Kind.WIDE


CODINGS: tuple[Coding, ...] = (
    Coding("base64", _base64, _base64_usual),
    Coding("base64 of UTF-16", _utf16_base64, _utf16_base64_usual),
    Coding("hexadecimal", _hexadecimal, _hexadecimal_usual, has_gaps=True),
    Coding("UTF-16 and UTF-32", _wide, _wide_usual),
    Coding("UTF-16 misread", _misread, _misread_usual, has_gaps=True),
)


SHORTEST_DECODED_CHARS: Final = 4
FRAGMENT_CHARS: Final = 8
"""The shortest fragment of a URL that is secret; shorter ones are words like `user`."""
WHOLE_FROM_CHARS: Final = 1024
"""Longer secrets are only searched for as a whole: they have hundreds of chance fragments."""
END_CHARS: Final = 16
"""How many characters previews show of a long value's ends."""

_SPLITS: Final = re.compile("[&=#?;]")
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^/]*/?")
"""A scheme and a host: hiding them would hide every address of that host."""
_COMMON_END: Final = re.compile("://|-----")
"""Marks of URLs and PEM keys, which many secrets share."""
_FIELD_NAME: Final = re.compile(r"[A-Za-z_.\-]{1,15}=")
_JWT: Final = re.compile(r"eyJ[\w\-]+\.([\w\-]{16,})\.([\w\-]{16,})")


class Cut(NamedTuple):
    """One way to cut a secret into pieces."""

    name: str
    apply: Callable[[str], Iterator[str]]


def pieces(secret: str) -> tuple[str, ...]:
    """The secret, and its pieces that are secret by themselves."""
    cuts = CUTS if len(secret) <= WHOLE_FROM_CHARS else ()
    found = (piece for cut in cuts for piece in cut.apply(secret))
    return tuple(dict.fromkeys((secret, *found)))


def decode(secret: str) -> Iterator[str]:
    """The secret decoded once more, as by a target that expected it encoded."""
    for text in (unquote(secret), unquote_plus(secret), secret.replace("+", " ")):
        if len(text.strip()) >= SHORTEST_DECODED_CHARS:
            yield text.strip()


def _fragments(secret: str) -> Iterator[str]:
    """The text between the separators of URLs and forms."""
    start = 0
    for end in (*(split.start() for split in _SPLITS.finditer(secret)), len(secret)):
        fragment = secret[start:end]
        named = _FIELD_NAME.fullmatch(secret, start, end + 1)
        if len(fragment) >= FRAGMENT_CHARS and not named and not _ADDRESS.fullmatch(fragment):
            yield fragment
        start = end + 1


def _ends(secret: str) -> Iterator[str]:
    if len(secret) >= 2 * END_CHARS:
        ends = (secret[:END_CHARS], secret[-END_CHARS:])
        yield from (end.strip() for end in ends if not _COMMON_END.search(end))


def _jwt_parts(secret: str) -> Iterator[str]:
    """Claims and signature; the header is the same in many."""
    token = _JWT.fullmatch(secret)
    if token is not None:
        yield from token.groups()


def _split_at_colon(secret: str) -> Iterator[str]:
    """The name and the message that Playwright makes of a text that a page throws."""
    before, _, after = secret.partition(":")
    message, is_address = after[1:], after.startswith("//")
    least = FRAGMENT_CHARS if is_address else SHORTEST_CHARS
    if len(message) >= least and is_usable(message) and not _ADDRESS.fullmatch(secret):
        yield message
    if message and len(before) >= FRAGMENT_CHARS and not _FIELD_NAME.fullmatch(before + "="):
        yield before


def _first_of_many(secret: str) -> Iterator[str]:
    """Node prints 50 bytes of a buffer and 100 items of a list."""
    encoded = secret.encode("utf-8", "surrogatepass")
    for size in (50, 100):
        if len(encoded) > size:
            yield encoded[:size].decode("utf-8", "ignore")


CUTS: tuple[Cut, ...] = (
    Cut("decoded once more", decode),
    Cut("fragments of a URL", _fragments),
    Cut("ends in previews", _ends),
    Cut("parts of a JWT", _jwt_parts),
    Cut("split at a colon", _split_at_colon),
    Cut("first of many bytes", _first_of_many),
)


CORE_CHARS: Final = 6
"""The length of a core: so many random letters do not occur by chance."""


def text_cores(secret: str) -> Iterator[str]:
    """Expressions of which one matches wherever one of the text forms does."""
    yield from (mixed_expression(_core(normalize(piece))) for piece in pieces(secret))


def whole_cores(secret: str) -> Iterator[str]:
    """Cores for encodings that change all of a secret, where no sign gives them away."""
    for text in whole_texts(secret):
        for coding in CODINGS:
            yield from _coding_cores(coding, secret, text)


def _coding_cores(coding: Coding, secret: str, text: str) -> Iterator[str]:
    """No expression where a sign of the encoding gives the form away."""
    written = encodings(text)
    if all(_has_sign(one) for encoded in written for one in coding.encode(secret, encoded)):
        return
    if coding.has_gaps:
        yield from coding.expressions(secret, written)
    else:
        yield from coding.expressions(_core(secret), encodings(_core(text)))


def _has_sign(text: bytes) -> bool:
    return any(contains_form(sign, text) for sign in sign_runs())


def _core(text: str) -> str:
    """The last of the parts with the fewest characters that have several spellings."""
    if len(text) <= CORE_CHARS:
        return text
    many = [0, *accumulate(char not in LETTERS_AND_DIGITS for char in text)]
    starts = range(len(text) - CORE_CHARS + 1)
    start = min(starts, key=lambda at: (many[at + CORE_CHARS] - many[at], -at))
    return text[start : start + CORE_CHARS]


_MOST_CHARS: Final = 1024
"""The longest typed prefix that is searched for."""


class Prefixes:
    """The prefixes of one typed secret, from the shortest that is hidden to nearly all of it."""

    def __init__(self, secret: str) -> None:
        self._least = shortest_prefix(secret) or secret
        self._secret = secret[:_MOST_CHARS]

    def text_cores(self) -> Iterator[str]:
        """An expression that matches wherever one of `text_forms` does."""
        yield mixed_expression(self._least)

    def whole_cores(self) -> Iterator[str]:
        """Expressions of which one matches wherever one of `whole_forms` does."""
        written = whole_bytes(self._least)
        for coding in CODINGS:
            yield from coding.expressions(self._least, written)

    def text_forms(self) -> Iterator[Form]:
        """Forms of the prefixes, character by character."""
        text = normalize(self._secret)
        parts = tuple(char_parts(text, char_expressions(text)))
        yield Form(parts, min_parts=len(normalize(self._least)))

    def whole_forms(self) -> Iterator[Form]:
        """Forms of the prefixes in encodings that change all of it at once."""
        for codec in WIDE_CODECS:
            chars = tuple(byte_parts(_bytes(char, codec) for char in self._secret))
            yield Form(chars, min_parts=len(self._least))
        for codec in WIDE_CODECS[:2]:
            encoded, least = _bytes(self._secret, codec), len(_bytes(self._least, codec))
            yield from _base64_prefixes(encoded, least=least)
            if not self._secret.isascii():  # the zeros are a sign of ASCII
                yield Form(tuple(hex_parts(encoded)), min_parts=least)
        for encoded, least in self._written():
            yield from _base64_prefixes(encoded, least=least)
            yield Form(tuple(hex_parts(encoded)), min_parts=least)

    def _written(self) -> Iterator[tuple[bytes, int]]:
        """The bytes that are encoded, and how many of them the shortest prefix has."""
        beginnings = whole_bytes(self._least)
        for encoded in whole_bytes(self._secret):
            sizes = [len(one) for one in beginnings if encoded.startswith(one)]
            if sizes:
                yield encoded, min(sizes)


def _base64_prefixes(encoded: bytes, *, least: int) -> Iterator[Form]:
    for offset, (letters, _) in enumerate(base64_letters(encoded)):
        filled = (offset + least) * 8 // 6 - BASE64_HEADS[offset]
        parts = tuple(letter_parts(letters))
        yield Form(parts, min_parts=filled, after=f"{BASE64_EDGE}?")


def _bytes(text: str, codec: str) -> bytes:
    return text.encode(codec, "surrogatepass")
