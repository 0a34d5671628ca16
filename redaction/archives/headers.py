"""Values of headers that are secret whatever they are, in traces, HAR files and call logs."""

import base64
import binascii
import re
from array import array
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from redaction.compiled import Pattern, compile_re2
from redaction.policy import HIDDEN

SHORTEST_CHARS: Final = 8
"""Shorter values are hidden in their header, and not looked for elsewhere."""
LONGEST_CHARS: Final = 16_384
MOST_FOUND: Final = 64
"""How many header values are also searched for elsewhere, Authorization's first."""
_MOST_REMEMBERED: Final = 10_000
_MOST_HEADERS: Final = 256
_MOST_SPANS: Final = 500_000
"""How many positions are remembered, eight bytes each."""
_MEMORY_BYTES: Final = 32 << 20
_HIDDEN: Final = HIDDEN.encode()
_STRING: Final = rb'(?:[^"\\]|\\.)*'
_STRING_WITHIN: Final = rb'(?:[^"\\]|\\\\[^"\\]|\\{3}"|\\{4})*'
"""A string of JSON inside a JSON string, as scripts print it: `\\"` begins and ends it."""
_SPACE_WITHIN: Final = rb"(?:\s|\\+n)*"
_COLOUR: Final = rb"(?:(?:\x1b|\\u001b)\[[0-9;]*m)?"
_BEFORE_NAME: Final = rb"(?:^|[\s\"'m]|\\[nt])"
_SCHEME: Final = re.compile(r"(?i)^\s*(?:basic|bearer|digest|token|apikey|negotiate)\s+")
_BASIC: Final = re.compile(r"(?i)^\s*basic\s+")
_COOKIES: Final = ("cookie", "set-cookie")


class HeaderRedactor:
    """Hides the values of sensitive headers and remembers them."""

    def __init__(self, names: Iterable[str]) -> None:
        names = sorted(names)
        self._pattern = _compile(names, is_bare=False)
        self._bare = _compile(names, is_bare=True)
        """Finds a header without locating its value, in half the time."""
        self._found: dict[str, bool] = {}
        """Values found, and whether each is a cookie's."""
        self._names = sorted(names, key=len, reverse=True)
        self.names: dict[str, str] = {}
        """In which header each value was found, in lower case."""
        self._headers: dict[bytes, tuple[int, int]] = {}
        """Headers already parsed, and where the value is in each.

        Most are repeated in every request.
        """
        self._spans: dict[int, array[int]] = {}
        """Where values are in texts already scanned, by the text's hash."""
        self._spans_left = _MOST_SPANS

    @property
    def found(self) -> tuple[str, ...]:
        """The values to search for elsewhere."""
        by_weight = sorted(self._found, key=lambda value: (self._found[value], -len(value)))
        return tuple(by_weight[:MOST_FOUND])

    def collect(self, text: bytes) -> bool:
        """Remember the values in a text; whether there are any."""
        spans = array("Q")
        for match in self._bare.finditer(text):
            at, end = match.span()
            known = self._headers.get(text[at:end])
            begins, ends = known or self._parse(self._pattern.search(text, at))
            if begins < ends:
                spans.extend((at + begins, at + ends))
        if self._spans_left >= len(spans):
            self._spans_left -= len(spans)
            self._spans[hash(text)] = spans
        return bool(spans)

    def hide(self, text: bytes) -> tuple[bytes, int]:
        """The text without the values, and how many there were."""
        out, at, count = [], 0, 0
        for begins, ends in self._spans_of(text):
            out += [text[at:begins], _hide_value(text[begins:ends])]
            at, count = ends, count + 1
        return (b"".join((*out, text[at:])), count) if count else (text, 0)

    def _spans_of(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Where the values are; a text that was scanned before is not searched again."""
        known = self._spans.pop(hash(text), None)
        if known is not None:
            self._spans_left += len(known)
            yield from zip(known[::2], known[1::2], strict=True)
            return
        for match in self._pattern.finditer(text):
            begins, ends = _span(match)
            if text[begins:ends] not in (b"", _HIDDEN):
                yield begins, ends

    def _parse(self, match: Any) -> tuple[int, int]:
        """Locate and remember the header's value. An empty range: nothing to hide."""
        header: bytes = match.group()
        begins, ends = (place - match.start() for place in _span(match))
        raw = header[begins:ends]
        if raw in (b"", _HIDDEN):
            begins, ends = 0, 0
        else:
            self._remember(header, raw)
        if len(header) <= LONGEST_CHARS and len(self._headers) < _MOST_HEADERS:
            self._headers[header] = begins, ends
        return begins, ends

    def _remember(self, header: bytes, raw: bytes) -> None:
        start = header.lower()
        is_cookie = b"cookie" in start
        name = next((one for one in self._names if one.encode() in start), _COOKIES[0])
        for value in _echoed_parts(_text(raw), is_cookie=is_cookie):
            fits = SHORTEST_CHARS <= len(value) <= LONGEST_CHARS and value.strip("*")
            if fits and len(self._found) < _MOST_REMEMBERED:
                self._found.setdefault(value, is_cookie)
                self.names.setdefault(value, name)


def _compile(names: list[str], *, is_bare: bool) -> Pattern:
    name = rb"(?i:" + "|".join(re.escape(name) for name in names).encode() + rb")"
    ways = (*_in_json(name), *_within_json(name), *_format(name))
    return compile_re2(b"|".join(ways), memory_bytes=_MEMORY_BYTES, never_capture=is_bare)


def _in_json(name: bytes) -> Iterator[bytes]:
    """Expressions for headers of that name, each with one group for the value."""
    quoted = rb'"' + name + rb'"'
    value = rb'"value"\s*:\s*"(' + _STRING + rb')"'
    yield rb'"name"\s*:\s*' + quoted + rb"\s*,\s*" + value
    yield value + rb'\s*,\s*"name"\s*:\s*' + quoted
    yield quoted + rb'\s*:\s*(?:\[\s*)?"(' + _STRING + rb')"'
    yield rb'"cookies"\s*:\s*\[((?:[^"\]]|"' + _STRING + rb'")+)\]'


def _within_json(name: bytes) -> Iterator[bytes]:
    """Expressions for headers in JSON inside a JSON string, at any depth."""
    quoted = rb'\\"' + name + rb'\\"'
    value = rb'\\"value\\"\s*:\s*\\"(' + _STRING_WITHIN + rb')\\"'
    apart = _SPACE_WITHIN + rb"," + _SPACE_WITHIN
    yield rb'\\"name\\"\s*:\s*' + quoted + apart + value
    yield value + apart + rb'\\"name\\"\s*:\s*' + quoted
    yield quoted + rb"\s*:\s*(?:\[" + _SPACE_WITHIN + rb')?\\"(' + _STRING_WITHIN + rb')\\"'
    deep = rb'\\{3,}"'
    yield deep + name + deep + rb"\s*:\s*(?:\[" + _SPACE_WITHIN + rb")?" + deep + rb'([^"\\]+)\\'


def _format(name: bytes) -> Iterator[bytes]:
    """Expressions for headers in call logs, console output and command lines."""
    text = _COLOUR + rb"'((?:[^'\\\r\n]|\\['\"\\/])+)'"
    apart = rb": ?(?:\[" + _SPACE_WITHIN + rb")?"
    yield rb"'" + name + rb"'" + apart + text
    yield _BEFORE_NAME + name + apart + text
    yield rb"'" + name + rb": ?([^'\r\n\"\\\x1b]+)'"
    yield _BEFORE_NAME + name + rb": ?((?:[^\r\n\"\\\x1b]|\\[\"\\/])+)"


def hint(names: Iterable[str]) -> str:
    """An expression that matches wherever a header of these names is."""
    name = "|".join(map(re.escape, sorted(names)))
    return rf'(?i:{name})(?:["\'\\]|: ?[^\s"])|"cookies"\s*:\s*\[\s*[^\s\]]'


_COOKIE_VALUE: Final = re.compile(rb'("value"\s*:\s*")((?:[^"\\]|\\.)*)(")')


def _span(match: Any) -> tuple[int, int]:
    begins, ends = match.span(match.lastindex)  # each way has one group
    return begins, ends


def _hide_value(value: bytes) -> bytes:
    """The replacement of a header's value or of the values in a list of cookies."""
    if b'"value"' in value:
        return _COOKIE_VALUE.sub(rb"\g<1>" + _HIDDEN + rb"\g<3>", value)
    return _HIDDEN


def _text(raw: bytes) -> str:
    try:
        return msgspec.json.decode(b'"' + raw + b'"', type=str)
    except msgspec.DecodeError:
        return raw.decode("utf-8", "replace")


def _echoed_parts(value: str, *, is_cookie: bool) -> Iterator[str]:
    """The parts of a header's value that a server may echo."""
    if '"value"' in value:
        for match in _COOKIE_VALUE.finditer(value.encode()):
            yield _text(match[2])
        return
    if is_cookie:
        for pair in re.split(r"[;\n]", value):
            yield pair.partition("=")[2].strip()
        return
    yield _SCHEME.sub("", value).strip()
    if _BASIC.match(value):
        yield from _basic_password(_BASIC.sub("", value).strip())


def _basic_password(encoded: str) -> Iterator[str]:
    try:
        pair = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return
    yield pair.partition(":")[2]
