"""The forms of secrets that are looked for.

Undo one layer of everything that encodes character by character. Pure.

Percent signs, HTML entities, backslashes of JavaScript, JSON and Python, and the colour codes of
terminals are undone in one pass, whatever they stand beside; nested ones take one pass a layer.
"""

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, Protocol

import re2

SHORT_BYTES: Final = 6
"""Shorter secrets come about by chance in what is decoded and was never encoded."""
_JOINED_LIMIT_BYTES: Final = 512
"""Longer ones are looked for one by one."""
_LAYERS: Final = 6
_QUOTINGS: Final = (
    ('"', '""'), ("'", "''"), ("'", r"'\''"), ("'", "'\"'\"'"),
)  # fmt: skip
"""How CSV, SQL and shells write a quote between quotes."""
_TELLING_CHARS: Final = 4
"""A text of which less is left when it is misread could be any."""
_NO_BREAK_SPACE: Final = "\N{NO-BREAK SPACE}".encode()
_MOST_MEMORY_BYTES: Final = 64 << 20
_SHOWN: Final = frozenset(range(0x20, 0x7F))


class _Compiled(Protocol):
    def search(self, text: bytes, /) -> object | None: ...


class Needles:
    """Says whether decoded bytes hold a secret."""

    def __init__(self, secrets: Iterable[str]) -> None:
        texts = tuple(dict.fromkeys(secret for secret in secrets if secret))
        self._known = frozenset(form for text in texts for form in _looks(text))
        self.shortest_bytes = min(map(len, self._known), default=0)
        self.longest_bytes = max(map(len, self._known), default=0)
        self.has_short = 0 < self.shortest_bytes < SHORT_BYTES
        # One look is enough: what is found as it is, is found where white space is shown alike.
        has_spaces = any(not _SPACES.isdisjoint(form) for form in self._known)
        as_is = (form for form in self._known if not has_spaces or form.endswith(_HALVES))
        self._exact = _Sought(as_is)
        self._certain = _Sought(form for form in self._known if len(form) >= SHORT_BYTES)
        self._has_letters = any(not form.isascii() for form in self._known)
        self._loose = _Sought({_loosely(form) for form in self._known if has_spaces})

    def __bool__(self) -> bool:
        return bool(self._known)

    def are_in(self, view: bytes) -> bool:
        """Whether one of them stands there."""
        if self._are_plainly_in(view):
            return True
        if not self._has_letters:
            return False
        mended = reread(view)
        return mended is not view and self._are_plainly_in(mended)

    def are_certainly_in(self, content: bytes) -> bool:
        """Whether one stands in bytes of any sort, and is too long to stand there by chance."""
        return self._certain.is_in(content)

    def _are_plainly_in(self, view: bytes) -> bool:
        return self._exact.is_in(view) or (bool(self._loose) and self._loose.is_in(_loosely(view)))

    def hold(self, piece: bytes) -> bool:
        """Whether this is one of them, and nothing else."""
        return piece in self._known

    def letters(self) -> bytes:
        """Every byte that they have and ASCII does not show, as those of UTF-16."""
        return bytes(sorted({byte for form in self._known for byte in form} - _SHOWN))


class _Sought:
    """A set of byte strings, looked for all at once."""

    def __init__(self, forms: Iterable[bytes]) -> None:
        forms = sorted(forms, key=len)
        self._long = tuple(form for form in forms if len(form) > _JOINED_LIMIT_BYTES)
        short = [form for form in forms if len(form) <= _JOINED_LIMIT_BYTES]
        self._short = _compiled(short) if short else None

    def __bool__(self) -> bool:
        return bool(self._long) or self._short is not None

    def is_in(self, view: bytes) -> bool:
        if self._short is not None and self._short.search(view) is not None:
            return True
        return any(form in view for form in self._long)


_SPACES: Final = frozenset(b" +\r\n\xa0")
_HALVES: Final = (b"\r", b"\xc2")
"""Ends that would be shown as something else together with what follows."""


def _loosely(text: bytes) -> bytes:
    """Forms and HTML write white space in several ways, which all are shown alike here."""
    text = text.replace(b"+", b" ").replace(_NO_BREAK_SPACE, b" ")
    return text.replace(b"\xa0", b" ").replace(b"\r\n", b"\n")


def _looks(secret: str) -> Iterator[bytes]:
    """The bytes of the secret in each character set, and what is left when it is unescaped too."""
    for quote, instead in _QUOTINGS:
        if quote in secret[1:-1]:
            quoted = secret[0] + secret[1:-1].replace(quote, instead) + secret[-1]
            yield quoted.encode("utf-8", "surrogatepass")
    for text in {secret, *(unicodedata.normalize(form, secret) for form in ("NFC", "NFD"))}:
        whole = text.encode("utf-8", "surrogatepass")
        yield whole
        if text.isascii():
            continue
        yield from _in_sets(text)
    bare = secret.encode("utf-8", "surrogatepass")
    for _ in range(_LAYERS):
        bare, before = unescaped(bare), bare
        if bare == before or len(bare) < SHORT_BYTES:
            return
        yield bare


def _in_sets(text: str) -> Iterator[bytes]:
    for charset in ("latin-1", "cp1252", "utf-16-le", "utf-16-be"):
        try:
            encoded = text.encode(charset)
        except UnicodeEncodeError:
            continue
        yield encoded
        # Readers of UTF-8 put a sign in the place of each byte that is none, and keep the rest.
        misread = encoded.decode("utf-8", "replace").replace("\0", "")
        if sum(map(str.isascii, misread)) >= _TELLING_CHARS:
            yield misread.encode()


def _compiled(forms: list[bytes]) -> _Compiled:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MOST_MEMORY_BYTES
    options.log_errors = False
    sought = b"|".join(b"".join(b"\\x%02x" % byte for byte in form) for form in forms)
    compiled: _Compiled = re2.compile(sought, options)
    return compiled


def _latin() -> re2.Options:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return options


_TOKEN: Final = re.compile(
    rb"(%[0-9A-Fa-f]{2}|%u[dD][89abAB][0-9A-Fa-f]{2}%u[dD][c-fC-F][0-9A-Fa-f]{2}|%u[0-9A-Fa-f]{4}"
    rb"|\\(?:[uU][dD][89abAB][0-9A-Fa-f]{2}\\[uU][dD][c-fC-F][0-9A-Fa-f]{2}"
    rb"|u\{0{0,16}[0-9A-Fa-f]{1,6}\}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}"
    rb"|N\{[A-Za-z0-9 \-]{2,80}\}|[0-7]{1,3}|\r?\n|[^\r])"
    rb"|&(?:\#0{0,16}[0-9]{1,7};?|\#[xX]0{0,16}[0-9A-Fa-f]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};)"
    rb"|\x1b\[[0-9;:?]{0,32}[A-Za-z])"
)
"""One group, so that what splits by it has text and tokens in turns."""
_STARTS: Final = (b"%", b"\\", b"&", b"\x1b")
_SHORT: Final = {
    ord("n"): b"\n", ord("r"): b"\r", ord("t"): b"\t", ord("b"): b"\b", ord("f"): b"\f",
    ord("v"): b"\v", ord("a"): b"\a",
}  # fmt: skip
_QUOTED: Final = re.compile(rb"=(?:[0-9A-Fa-f]{2}|[ \t]{0,64}\r?\n)")
_QUOTED_SIGN: Final = re2.compile(
    rb"=(?:00|09|0[AaDd]|1[Bb]|2[0-9A-Fa-f]|3[A-Fa-f]|40|5[B-Fb-f]|60|7[B-Fb-f]|[89A-Fa-f][0-9A-Fa-f]"
    rb"|[ \t]{0,64}\r?\n|46rom|[0-9A-Fa-f]{2}=[0-9A-Fa-f]{2})",
    _latin(),
)
"""A lone letter or digit is quoted by nobody, but for the F of `From` that begins a line."""
_QUOTED_BYTES: Final = {f"={byte:02x}".encode(): bytes((byte,)) for byte in range(256)}
_READ_WRONGLY: Final = re.compile(rb"(?:[\xc2\xc3][\x80-\xbf]){2,}")
_IS_READ_WRONGLY: Final = re2.compile(rb"(?:[\xc2\xc3][\x80-\xbf]){2}", _latin())
"""Most texts are not, which RE2 tells ten times as fast."""
_LAST_POINT: Final = 0x10FFFF


def unescaped(text: bytes) -> bytes:
    """The text without its outermost layer of escapes."""
    if not any(start in text for start in _STARTS):
        return text
    parts = _TOKEN.split(text)
    parts[1::2] = map(_read, parts[1::2])
    return b"".join(parts)


def reread(text: bytes) -> bytes:
    """The text with `Ã¶` for `ö` mended: UTF-8 that was read as Latin-1 and written anew."""
    if text.isascii() or _IS_READ_WRONGLY.search(text) is None:
        return text
    return _READ_WRONGLY.sub(_read_rightly, text)


def _read_rightly(found: re.Match[bytes]) -> bytes:
    bare = found[0].decode().encode("latin-1")
    try:
        bare.decode()
    except UnicodeDecodeError:
        return found[0]
    return bare


def unquoted_printable(text: bytes, *, reach_bytes: int) -> bytes:
    """What is quoted-printable in a text, decoded, with so much before and after it.

    Texts hold what only looks so, as `?page=12`; the rest of them need no second look.
    """
    spans = _spans(text, reach_bytes)
    return b"\n\x01\n".join(_QUOTED.sub(_quoted_byte, text[slice(*span)]) for span in spans)


def _spans(text: bytes, reach_bytes: int) -> list[tuple[int, int]]:
    """Where there is something quoted, with what is around it; spans that meet are one."""
    spans: list[tuple[int, int]] = []
    for found in _QUOTED_SIGN.finditer(text):
        start, end = max(0, found.start() - reach_bytes), found.end() + reach_bytes
        if spans and start <= spans[-1][1]:
            start = spans.pop()[0]
        spans.append((start, end))
    return spans


def _quoted_byte(found: re.Match[bytes]) -> bytes:
    return _QUOTED_BYTES.get(found[0].lower(), b"")


@lru_cache(maxsize=16384)
def _read(token: bytes) -> bytes:
    match token[0]:
        case 0x25 if token.startswith(b"%u"):
            units = bytes.fromhex(token.replace(b"%u", b"").decode())
            return units.decode("utf-16-be", "replace").encode()
        case 0x25:
            return bytes((int(token[1:], 16),))
        case 0x26:
            return html.unescape(token.decode("ascii")).encode("utf-8", "replace")
        case 0x1B:
            return b""
        case _:
            return _read_backslash(token)


def _read_backslash(token: bytes) -> bytes:
    sort, rest = token[1], token[2:]
    if sort in _NUMBERED and rest:
        return _NUMBERED[sort](rest)
    if 0x30 <= sort <= 0x37:
        return _point(int(token[1:], 8))
    if sort in b"\r\n":
        return b""
    return _SHORT.get(sort, token[1:])


def _units(rest: bytes) -> bytes:
    r"""Of `\u`: one code unit, a pair of them, or a code point in braces."""
    if b"\\" in rest:
        pair = bytes.fromhex((rest[:4] + rest[6:]).decode())
        return pair.decode("utf-16-be", "replace").encode()
    return _point(int(rest.strip(b"{}"), 16))


def _named(rest: bytes) -> bytes:
    try:
        return unicodedata.lookup(rest.strip(b"{}").decode()).encode()
    except KeyError:
        return rest


def _hexadecimal(rest: bytes) -> bytes:
    return _point(int(rest, 16))


_NUMBERED: Final[dict[int, Callable[[bytes], bytes]]] = {
    ord("u"): _units, ord("U"): _units, ord("x"): _hexadecimal, ord("N"): _named,
}  # fmt: skip


def _point(number: int) -> bytes:
    return chr(min(number, _LAST_POINT)).encode("utf-8", "surrogatepass")
