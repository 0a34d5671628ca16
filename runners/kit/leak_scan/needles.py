"""The secrets as they look once everything is decoded. Pure."""

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

import re2

from runners.kit.leak_scan.escapes import reread, unescaped

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
