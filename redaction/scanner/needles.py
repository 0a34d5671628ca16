"""The byte strings to search for, and the escapes that are removed from texts first.

Percent signs, HTML entities, backslashes of JavaScript, JSON and Python, and terminal colours are
removed in one pass; nested escapes take one pass a layer.
"""

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final

import re2

SHORT_BYTES: Final = 6
"""Shorter secrets occur by chance in decoded data that was never encoded."""
_JOINED_LIMIT_BYTES: Final = 512
"""Longer needles are searched for one by one."""
_LAYERS: Final = 6
_QUOTINGS: Final = (
    ('"', '""'), ("'", "''"), ("'", r"'\''"), ("'", "'\"'\"'"),
)  # fmt: skip
"""How CSV, SQL and shells write a quote between quotes."""
_TELLING_CHARS: Final = 4
"""How many ASCII characters a misread text keeps at least; with fewer it could be any text."""
_NO_BREAK_SPACE: Final = "\N{NO-BREAK SPACE}".encode()
_MOST_MEMORY_BYTES: Final = 64 << 20
_SHOWN: Final = frozenset(range(0x20, 0x7F))


class Needles:
    """Finds secrets in decoded bytes."""

    def __init__(self, secrets: Iterable[str]) -> None:
        texts = tuple(dict.fromkeys(secret for secret in secrets if secret))
        self._known = frozenset(form for text in texts for form in _needle_forms(text))
        self.shortest_bytes = min(map(len, self._known), default=0)
        self.longest_bytes = max(map(len, self._known), default=0)
        self.has_short = 0 < self.shortest_bytes < SHORT_BYTES
        # One look is enough: what is found as it is, is found where white space is shown alike.
        has_spaces = any(not _SPACES.isdisjoint(form) for form in self._known)
        as_is = (form for form in self._known if not has_spaces or form.endswith(_HALVES))
        self._exact = _NeedleSet(as_is)
        self._certain = _NeedleSet(form for form in self._known if len(form) >= SHORT_BYTES)
        self._has_letters = any(not form.isascii() for form in self._known)
        self._loose = _NeedleSet({_normalize_spaces(form) for form in self._known if has_spaces})
        lines = [form for form in self._known if b"\n" in form]
        self.has_lines = bool(lines)
        """Whether one has several lines, which texts may show apart."""
        apart = (form for line in lines for form in (_join_lines(line), _BREAK.sub(b"", line)))
        self._lines = _NeedleSet(set(apart))

    def __bool__(self) -> bool:
        return bool(self._known)

    def are_in(self, view: bytes) -> bool:
        """Whether one of them is in the text."""
        if self._are_plainly_in(view):
            return True
        if not self._has_letters:
            return False
        fixed = fix_mojibake(view)
        return fixed is not view and self._are_plainly_in(fixed)

    def are_certainly_in(self, content: bytes) -> bool:
        """Whether one is in any bytes that is too long to occur by chance."""
        return self._certain.is_in(content)

    def _are_plainly_in(self, view: bytes) -> bool:
        return (
            self._exact.is_in(view)
            or (bool(self._loose) and self._loose.is_in(_normalize_spaces(view)))
            or (
                self.has_lines and (self._lines.is_in(_join_lines(view)) or self._lines.is_in(view))
            )
        )

    def hold(self, piece: bytes) -> bool:
        """Whether the piece is exactly one of them."""
        return piece in self._known

    def letters(self) -> bytes:
        """Their bytes outside printable ASCII, such as those of UTF-16."""
        return bytes(sorted({byte for form in self._known for byte in form} - _SHOWN))


class _NeedleSet:
    """A set of byte strings, searched for at once."""

    def __init__(self, forms: Iterable[bytes]) -> None:
        forms = sorted(forms, key=len)
        self._long = tuple(form for form in forms if len(form) > _JOINED_LIMIT_BYTES)
        short = [form for form in forms if len(form) <= _JOINED_LIMIT_BYTES]
        self._short = _compile_any(short) if short else None

    def __bool__(self) -> bool:
        return bool(self._long) or self._short is not None

    def is_in(self, view: bytes) -> bool:
        if self._short is not None and self._short.search(view) is not None:
            return True
        return any(form in view for form in self._long)


_SPACES: Final = frozenset(b" +\r\n\xa0")
_HALVES: Final = (b"\r", b"\xc2")
"""Endings that, with the byte after them, would be normalized to something else."""


def _normalize_spaces(text: bytes) -> bytes:
    """Normalize the several spellings of white space in forms and HTML."""
    text = text.replace(b"+", b" ").replace(_NO_BREAK_SPACE, b" ")
    return text.replace(b"\xa0", b" ").replace(b"\r\n", b"\n")


_BREAK: Final = re.compile(rb"[ \t]*\r?\n[ \t]*")
_BETWEEN_LINES: Final = re.compile(rb"(?:[ \t\r\n\f\v\"'+,\-]|\xc2\xa0)+")


def _join_lines(text: bytes) -> bytes:
    """Normalize what separates lines: white space, quotes, commas, signs of differences."""
    return _BETWEEN_LINES.sub(b"\n", text).strip(b"\n")


def _needle_forms(secret: str) -> Iterator[bytes]:
    """The secret's bytes in each character set and quoting, and with its own escapes removed."""
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
        bare, before = remove_escapes(bare), bare
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


def _compile_any(forms: list[bytes]) -> re.Pattern[bytes]:
    source = b"|".join(b"".join(b"\\x%02x" % byte for byte in form) for form in forms)
    return compile_re2(source, memory_bytes=_MOST_MEMORY_BYTES)


def compile_re2(source: bytes, *, memory_bytes: int = 8 << 20) -> re.Pattern[bytes]:
    """Compile an expression of bytes; RE2's has the methods of `re` and no type of its own."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = memory_bytes
    options.log_errors = False
    compiled: re.Pattern[bytes] = re2.compile(source, options)
    return compiled


_TOKEN: Final = re.compile(
    rb"(%[0-9A-Fa-f]{2}|%u[dD][89abAB][0-9A-Fa-f]{2}%u[dD][c-fC-F][0-9A-Fa-f]{2}|%u[0-9A-Fa-f]{4}"
    rb"|\\(?:[uU][dD][89abAB][0-9A-Fa-f]{2}\\[uU][dD][c-fC-F][0-9A-Fa-f]{2}"
    rb"|u\{0{0,16}[0-9A-Fa-f]{1,6}\}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}"
    rb"|N\{[A-Za-z0-9 \-]{2,80}\}|[0-7]{1,3}|\r?\n|[^\r])"
    rb"|&(?:\#0{0,16}[0-9]{1,7};?|\#[xX]0{0,16}[0-9A-Fa-f]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};)"
    rb"|\x1b\[[0-9;:?]{0,32}[A-Za-z])"
)
"""An escape, in one group, so that splitting yields text and escapes in turns."""
_STARTS: Final = (b"%", b"\\", b"&", b"\x1b")
_SHORT: Final = {
    ord("n"): b"\n", ord("r"): b"\r", ord("t"): b"\t", ord("b"): b"\b", ord("f"): b"\f",
    ord("v"): b"\v", ord("a"): b"\a",
}  # fmt: skip
_QUOTED: Final = re.compile(rb"=(?:[0-9A-Fa-f]{2}|[ \t]{0,64}\r?\n)")
_QUOTED_SIGN: Final = compile_re2(
    rb"=(?:00|09|0[AaDd]|1[Bb]|2[0-9A-Fa-f]|3[A-Fa-f]|40|5[B-Fb-f]|60|7[B-Fb-f]|[89A-Fa-f][0-9A-Fa-f]"
    rb"|[ \t]{0,64}\r?\n|46rom|[0-9A-Fa-f]{2}=[0-9A-Fa-f]{2})",
)
"""A sign of quoted-printable: lone letters and digits are only quoted in a leading `From`."""
_QUOTED_BYTES: Final = {f"={byte:02x}".encode(): bytes((byte,)) for byte in range(256)}
_READ_WRONGLY: Final = re.compile(rb"(?:[\xc2\xc3][\x80-\xbf]){2,}")
_IS_READ_WRONGLY: Final = compile_re2(rb"(?:[\xc2\xc3][\x80-\xbf]){2}")
"""Excludes most texts, ten times as fast as `re`."""
_LAST_POINT: Final = 0x10FFFF


def remove_escapes(text: bytes) -> bytes:
    """Remove the outermost layer of escapes."""
    if not any(start in text for start in _STARTS):
        return text
    parts = _TOKEN.split(text)
    parts[1::2] = map(_read, parts[1::2])
    return b"".join(parts)


def fix_mojibake(text: bytes) -> bytes:
    """Fix mojibake such as `Ã¶` for `ö`: UTF-8 that was decoded as Latin-1."""
    if text.isascii() or _IS_READ_WRONGLY.search(text) is None:
        return text
    return _READ_WRONGLY.sub(_decode_again, text)


def _decode_again(found: re.Match[bytes]) -> bytes:
    bare = found[0].decode().encode("latin-1")
    try:
        bare.decode()
    except UnicodeDecodeError:
        return found[0]
    return bare


def decode_quoted_printable(text: bytes, *, reach_bytes: int) -> bytes:
    """Decode the quoted-printable parts of a text, with `reach_bytes` around them.

    Texts have false signs, such as `?page=12`; the rest is not searched twice.
    """
    spans = _spans(text, reach_bytes)
    return b"\n\x01\n".join(_QUOTED.sub(_quoted_byte, text[slice(*span)]) for span in spans)


def _spans(text: bytes, reach_bytes: int) -> list[tuple[int, int]]:
    """The ranges around quoted bytes, merged where they touch."""
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
    r"""Decode `\u`: one code unit, a surrogate pair, or a code point in braces."""
    if b"\\" in rest:
        pair = bytes.fromhex((rest[:4] + rest[6:]).decode())
        return pair.decode("utf-16-be", "replace").encode()
    return _point(int(rest.strip(b"{}"), 16))


def _unicode_name(rest: bytes) -> bytes:
    try:
        return unicodedata.lookup(rest.strip(b"{}").decode()).encode()
    except KeyError:
        return rest


def _hexadecimal(rest: bytes) -> bytes:
    return _point(int(rest, 16))


_NUMBERED: Final[dict[int, Callable[[bytes], bytes]]] = {
    ord("u"): _units, ord("U"): _units, ord("x"): _hexadecimal, ord("N"): _unicode_name,
}  # fmt: skip


def _point(number: int) -> bytes:
    return chr(min(number, _LAST_POINT)).encode("utf-8", "surrogatepass")
