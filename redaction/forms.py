"""The forms that a secret takes in encoded text, as expressions.

Every form in which a secret may turn up, as expressions for RE2 over bytes.

What is sent is seldom the secret itself: `{{NAME}}` and the building of an address encode it, and
the target encodes and decodes what it got. Each character may be written in each of its ways
(`characters`), pieces stand alone (`pieces`), and some encodings change all at once (`whole`).

Short parts of a secret's forms: where none of them is, there is none of the forms.

A whole form has hundreds of ways of being written; a few characters of it are found with a small
part of the states and of the memory, and only around them the forms themselves are looked for.

Beginnings of secrets that were typed letter by letter, as pages tell each state of a field.

Each form finds the longest beginning at once: one a beginning would be sixty for a secret.
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
from redaction.compiled import Form, Part, char_parts, form, found_in, part
from redaction.decoders import Kind, sign_runs
from redaction.encodings import (
    BACKSLASHES,
    BETWEEN_BYTES,
    LETTERS_AND_DIGITS,
    PERCENT,
    alike,
    each_mixed,
    encodings,
    hex_digits,
    literal,
    mixed,
)
from redaction.policy import beginning_of

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
    for coding in CODINGS:
        yield from coding.forms(secret, written)


def whole_texts(secret: str) -> tuple[str, ...]:
    """What is encoded when an encoding changes all of the secret at once."""
    texts = (*written_forms(secret), *decode(secret), *_further_forms(secret))
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
    sent = (*written_forms(secret), *decode(secret))
    return tuple(dict.fromkeys(form for text in sent for form in written_forms(text)))


def _quote(text: str, safe: str = "") -> str:
    return quote(text, safe=safe, errors="surrogatepass")


WIDE_CODECS: Final = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")

BETWEEN: Final = r"[\s:,\-]*(?:0x)?"
"""As openssl, hexdump and debuggers part them."""
BASE64_EDGE: Final = rf"(?:[A-Za-z0-9+/_\-]|{PERCENT}2[bBfF])"
"""A base64 character that holds bits of the secret and of its neighbour."""
BASE64_HEADS: Final = (0, 2, 3)
"""So many letters hold bits of what comes before, where that many bytes of it do not fill four."""
BASE64_CHARS: Final = {
    "+": rf"(?:{BACKSLASHES}u002[bB]|[+\-]|{PERCENT}2[bB])",
    "/": rf"(?:{BACKSLASHES}/|/|_|{PERCENT}2[fF])",
}
_HEX: Final = re.compile(rf"(?:(?:0x)?[0-9A-Fa-f]{{2}}{BETWEEN_BYTES}*)+".encode())
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_\-%\\]+")


class Coding(NamedTuple):
    """One encoding of bytes as a whole."""

    name: str
    parts: Callable[[str, tuple[bytes, ...]], Iterator[Iterable[Part]]]
    """What a secret reads in it, and what the bytes do in which that is usually written."""
    plainly: Callable[[str, bytes], Iterator[bytes]]
    """What a secret in these bytes reads then. A sign that all of it has is in all variants too."""
    has_gaps: bool = False
    """Whether a part does not tell of the rest, as where much may stand between its bytes."""

    def of(self, secret: str, written: tuple[bytes, ...]) -> Iterator[str]:
        """Expressions for it."""
        yield from (form.whole for form in self.forms(secret, written))

    def forms(self, secret: str, written: tuple[bytes, ...]) -> Iterator[Form]:
        """The same, part by part."""
        yield from (form(parts) for parts in self.parts(secret, written))


def _base64(_: str, written: tuple[bytes, ...]) -> Iterator[Iterable[Part]]:
    for encoded in written:
        yield from _base64_places(encoded)


def _base64_plainly(_: str, encoded: bytes) -> Iterator[bytes]:
    yield from (letters.encode() for letters, _ in base64_letters(encoded))


def _base64_of_utf16(secret: str, _: tuple[bytes, ...]) -> Iterator[Iterable[Part]]:
    for codec in WIDE_CODECS[:2]:
        yield from _base64_places(secret.encode(codec, "surrogatepass"))


def _base64_of_utf16_plainly(secret: str, _: bytes) -> Iterator[bytes]:
    for codec in WIDE_CODECS[:2]:
        yield from _base64_plainly(secret, secret.encode(codec, "surrogatepass"))


def _base64_places(encoded: bytes) -> Iterator[Iterable[Part]]:
    for letters, is_cut in base64_letters(encoded):
        yield (*letter_parts(letters), *[part(BASE64_EDGE)] * is_cut)


def base64_letters(encoded: bytes) -> Iterator[tuple[str, bool]]:
    """The bytes at each of the three places at which they may start among others.

    Also whether a letter follows that holds bits of what comes next.
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
    """Bytes in hexadecimal, parted or not."""
    for number, byte in enumerate(encoded):
        digits = f"{byte:02x}"
        yield part((BETWEEN if number else "") + hex_digits(digits), digits.encode())


def byte_parts(pieces: Iterable[bytes]) -> Iterator[Part]:
    """Bytes as they are."""
    yield from (part(literal(piece), piece) for piece in pieces)


def _hexadecimal(secret: str, written: tuple[bytes, ...]) -> Iterator[Iterable[Part]]:
    yield from map(hex_parts, (*written, *_unlike_ascii(secret)))


def _hexadecimal_plainly(secret: str, encoded: bytes) -> Iterator[bytes]:
    written = (encoded, *_unlike_ascii(secret))
    yield from (one.hex(*apart).encode() for one in written for apart in ((), (" ",)))


def _unlike_ascii(secret: str) -> Iterator[bytes]:
    """The secret in UTF-16, where its zeros are not the sign that they are among ASCII."""
    if not secret.isascii():
        yield from (secret.encode(codec, "surrogatepass") for codec in WIDE_CODECS[:2])


def _wide(secret: str, _: tuple[bytes, ...]) -> Iterator[Iterable[Part]]:
    for codec in WIDE_CODECS:
        yield byte_parts(char.encode(codec, "surrogatepass") for char in secret)


def _wide_plainly(secret: str, _: bytes) -> Iterator[bytes]:
    for codec in WIDE_CODECS:
        yield secret.encode(codec, "surrogatepass")


def _misread(secret: str, _: tuple[bytes, ...]) -> Iterator[Iterable[Part]]:
    for misread in _misread_plainly(secret, b""):
        yield byte_parts(misread[at : at + 1] for at in range(len(misread)))


def _misread_plainly(secret: str, _: bytes) -> Iterator[bytes]:
    """What a reader of UTF-8 makes of it, which loses bytes and keeps most, or one of Latin-1."""
    if not secret.isascii():
        for codec in WIDE_CODECS:
            encoded = secret.encode(codec, "surrogatepass")
            yield encoded.decode("utf-8", "replace").encode()
            yield encoded.decode("latin-1").encode()


def kind_of(covered: bytes) -> Kind:
    """What the form is written in by the look of it."""
    if _HEX.fullmatch(covered):
        return Kind.HEX
    return Kind.BASE64 if _BASE64.fullmatch(covered) else Kind.WIDE


CODINGS: tuple[Coding, ...] = (
    Coding("base64", _base64, _base64_plainly),
    Coding("base64 of UTF-16", _base64_of_utf16, _base64_of_utf16_plainly),
    Coding("hexadecimal", _hexadecimal, _hexadecimal_plainly, has_gaps=True),
    Coding("UTF-16 and UTF-32", _wide, _wide_plainly),
    Coding("UTF-16 misread", _misread, _misread_plainly, has_gaps=True),
)


SHORTEST_DECODED_CHARS: Final = 4
FRAGMENT_CHARS: Final = 8
"""Shorter fragments of a URL are words like `user`."""
WHOLE_FROM_CHARS: Final = 1024
"""Longer secrets have hundreds of fragments by chance, and are looked for as a whole."""
END_CHARS: Final = 16
"""What previews show of a long value."""

_SPLITS: Final = re.compile("[&=#?;]")
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^/]*/?")
"""A scheme and a host: hiding them would hide every address of that host."""
_COMMON_END: Final = re.compile("://|-----")
"""Of an address, and of each key in PEM: many have them."""
_FIELD_NAME: Final = re.compile(r"[A-Za-z_.\-]{1,15}=")
_JWT: Final = re.compile(r"eyJ[\w\-]+\.([\w\-]{16,})\.([\w\-]{16,})")


class Cut(NamedTuple):
    """One way in which pieces come about."""

    name: str
    of: Callable[[str], Iterator[str]]


def pieces(secret: str) -> tuple[str, ...]:
    """The secret, and its pieces that are secret by themselves."""
    cuts = CUTS if len(secret) <= WHOLE_FROM_CHARS else ()
    found = (piece for cut in cuts for piece in cut.of(secret))
    return tuple(dict.fromkeys((secret, *found)))


def decode(secret: str) -> Iterator[str]:
    """What a target makes of a secret that came as it is where it expected it encoded."""
    for text in (unquote(secret), unquote_plus(secret), secret.replace("+", " ")):
        if len(text.strip()) >= SHORTEST_DECODED_CHARS:
            yield text.strip()


def _fragments(secret: str) -> Iterator[str]:
    """What stands between the signs at which URLs and forms are taken apart."""
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


CUTS: tuple[Cut, ...] = (
    Cut("decoded once more", decode),
    Cut("fragments of a URL", _fragments),
    Cut("ends in previews", _ends),
    Cut("parts of a JWT", _jwt_parts),
)


CORE_CHARS: Final = 6
"""Of random letters so many are never there by chance."""


def text_cores(secret: str) -> Iterator[str]:
    """Expressions of which one is found in each form that is written character by character."""
    yield from (mixed(_core(alike(piece))) for piece in pieces(secret))


def whole_cores(secret: str) -> Iterator[str]:
    """The same for encodings that change all at once, where no sign tells of them."""
    for text in whole_texts(secret):
        for coding in CODINGS:
            yield from _encoded_core(coding, secret, text)


def _encoded_core(coding: Coding, secret: str, text: str) -> Iterator[str]:
    """Nothing where a sign of the encoding tells of the form."""
    written = encodings(text)
    if all(_has_sign(one) for encoded in written for one in coding.plainly(secret, encoded)):
        return
    if coding.has_gaps:
        yield from coding.of(secret, written)
    else:
        yield from coding.of(_core(secret), encodings(_core(text)))


def _has_sign(text: bytes) -> bool:
    return any(found_in(sign, text) for sign in sign_runs())


def _core(text: str) -> str:
    """The part with the fewest characters that are written in several ways; of these the last."""
    if len(text) <= CORE_CHARS:
        return text
    many = [0, *accumulate(char not in LETTERS_AND_DIGITS for char in text)]
    starts = range(len(text) - CORE_CHARS + 1)
    start = min(starts, key=lambda at: (many[at + CORE_CHARS] - many[at], -at))
    return text[start : start + CORE_CHARS]


_MOST_CHARS: Final = 1024
"""Nobody types longer ones."""


class Beginnings:
    """Of one secret, from the shortest that is looked for to nearly all of it."""

    def __init__(self, secret: str) -> None:
        self._least = beginning_of(secret) or secret
        self._secret = secret[:_MOST_CHARS]

    def text_cores(self) -> Iterator[str]:
        """What is found wherever one of the text forms is."""
        yield mixed(self._least)

    def whole_cores(self) -> Iterator[str]:
        """Of which one is found wherever one of the whole forms is."""
        written = whole_written(self._least)
        for coding in CODINGS:
            yield from coding.of(self._least, written)

    def text_forms(self) -> Iterator[Form]:
        """Character by character."""
        text = alike(self._secret)
        parts = tuple(char_parts(text, each_mixed(text)))
        yield Form(parts, least=len(alike(self._least)))

    def whole_forms(self) -> Iterator[Form]:
        """Where an encoding changes all of it at once."""
        for codec in WIDE_CODECS:
            chars = tuple(byte_parts(_bytes(char, codec) for char in self._secret))
            yield Form(chars, least=len(self._least))
        for codec in WIDE_CODECS[:2]:
            encoded, least = _bytes(self._secret, codec), len(_bytes(self._least, codec))
            yield from _base64_prefixes(encoded, least=least)
            if not self._secret.isascii():  # the zeros are a sign of ASCII
                yield Form(tuple(hex_parts(encoded)), least=least)
        for encoded, least in self._written():
            yield from _base64_prefixes(encoded, least=least)
            yield Form(tuple(hex_parts(encoded)), least=least)

    def _written(self) -> Iterator[tuple[bytes, int]]:
        """What is encoded, and how much of it the shortest beginning is."""
        beginnings = whole_written(self._least)
        for encoded in whole_written(self._secret):
            sizes = [len(one) for one in beginnings if encoded.startswith(one)]
            if sizes:
                yield encoded, min(sizes)


def _base64_prefixes(encoded: bytes, *, least: int) -> Iterator[Form]:
    for offset, (letters, _) in enumerate(base64_letters(encoded)):
        filled = (offset + least) * 8 // 6 - BASE64_HEADS[offset]
        parts = tuple(letter_parts(letters))
        yield Form(parts, least=filled, after=f"{BASE64_EDGE}?")


def _bytes(text: str, codec: str) -> bytes:
    return text.encode(codec, "surrogatepass")
