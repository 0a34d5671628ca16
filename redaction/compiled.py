"""Expressions compiled by RE2, whole or in segments that follow each other.

Forms too long to be compiled as a whole: their heads are, and what follows is read in parts.

A character that may be written in each of its ways takes RE2 several kilobytes, so that ten secrets
of a thousand would take 700 MB. There are few different ones, of which each is compiled once.
"""

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple, Protocol

import re2

from redaction.encodings import LETTERS_AND_DIGITS, MOST_BYTES_PER_CHAR, begun

LIMIT_CHARS: Final = 200_000
"""Expressions are joined up to this size: ten secrets make one, forty two."""
MEMORY_LIMIT_BYTES: Final = 64 << 20
"""What RE2 may use for one; with half of it large ones run out of states and crawl at 1 MB/s."""


class _Found(Protocol):
    def span(self) -> tuple[int, int]: ...


class Compiled(Protocol):
    """One compiled expression."""

    def search(self, text: bytes, start: int = 0, /) -> _Found | None:
        """The first place at which it is found, and there the longest."""

    def fullmatch(self, text: bytes, /) -> _Found | None:
        """The whole of the text, if that is what it describes."""


class Placed(Compiled, Protocol):
    """One that can be asked of a place as well."""

    def match(self, text: bytes, start: int = 0, /) -> _Found | None:
        """The longest that begins in that very place."""


class Anchored(Protocol):
    """One compiled expression that is wanted in one place."""

    def match(self, text: bytes, start: int, /) -> _Found | None:
        """The longest that begins there."""

    def fullmatch(self, text: bytes, start: int, end: int, /) -> _Found | None:
        """All from there to there, if that is what it describes."""


def compiled(forms: Iterable[str], *, limit_chars: int = LIMIT_CHARS) -> tuple[Placed, ...]:
    """The forms in as few expressions as may be of at most that size."""
    return tuple(_compiled(source) for source in _join(forms, limit_chars))


def compiled_alone(form: str) -> Anchored:
    """A form that is looked for in one place after the other."""
    expression: Anchored = _compiled(form)
    return expression


@cache
def compiled_once(form: str) -> tuple[Placed, ...]:
    """A form that is always the same."""
    return compiled([form])


def found_in(form: str, text: bytes) -> bool:
    """Whether the text holds a form that is always the same."""
    return any(expression.search(text) is not None for expression in compiled_once(form))


def spans(expression: Compiled, text: bytes) -> Iterator[tuple[int, int]]:
    """Where it is found, those places too that overlap one found before."""
    found = expression.search(text)
    while found is not None:
        start, end = found.span()
        yield start, end
        found = expression.search(text, start + 1)


def apart(expression: Compiled, text: bytes) -> Iterator[tuple[int, int]]:
    """Where it is found, each place after the end of the one before."""
    found = expression.search(text)
    while found is not None:
        yield found.span()
        found = expression.search(text, found.span()[1])


def _join(forms: Iterable[str], limit_chars: int) -> Iterator[str]:
    joined: list[str] = []
    size = 0
    for form in dict.fromkeys(forms):
        if joined and size + len(form) > limit_chars:
            yield "|".join(joined)
            joined, size = [], 0
        joined.append(form)
        size += len(form)
    if joined:
        yield "|".join(joined)


def _compiled(source: str) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.longest_match = True  # the longest covers all that begin in the same place
    options.dot_nl = True
    options.max_mem = MEMORY_LIMIT_BYTES
    options.log_errors = False
    expression = re2.compile(source.encode("latin-1"), options)
    re2.purge()  # it remembers 128 expressions, of which each may hold all its memory
    return expression


HEAD_PARTS: Final = 8
"""So many are compiled together of a form that is found as a whole only."""
_REMEMBERED_PARTS: Final = 512
_REMEMBERED_HEADS: Final = 1024
_ALONE: Final = LETTERS_AND_DIGITS | set("!#$()*+,-./:;<>?@[]^_`{|}~")
"""Of these nothing longer begins with the character itself, as `&amp;` does with `&`."""


class Part(NamedTuple):
    """What is written without a gap: a character, or a letter of an encoding."""

    expression: str
    plain: bytes = b""
    """How it mostly is written, with which no other way begins. Empty: there is none."""


class Form(NamedTuple):
    """One way of writing a text."""

    parts: tuple[Part, ...]
    least: int
    """So many of the parts are found without the others."""
    after: str = ""
    """What may stand behind the last one, as an expression."""

    @property
    def whole(self) -> str:
        """All of it as one expression."""
        return begun("".join(part.expression for part in self.parts))

    @property
    def head(self) -> str:
        """What is there whenever the form is, as an expression."""
        parts = self.parts[: self.least if self.least < len(self.parts) else HEAD_PARTS]
        return begun("".join(part.expression for part in parts))

    def end_in(self, text: bytes, start: int) -> int:
        """Where the form ends that begins there, at the furthest. -1: none does."""
        ends = -1
        places: tuple[int, ...] = (start,)
        for number, part in enumerate(self.parts):
            if number >= self.least:
                ends = max(ends, *places)
            places = _behind(part, text, places)
            if not places:
                break
        ends = max(ends, *places, -1)
        further = _ends(self.after, text, ends) if self.after and ends >= 0 else ()
        return max(ends, *further, -1)

    def begins(self, head: bytes) -> bool:
        """Whether what was found as some head is the head of this form."""
        places: tuple[int, ...] = (0,)
        for part in self.parts[: min(self.least, HEAD_PARTS)]:
            places = _behind(part, head, places)
        return bool(places)


def form(parts: Iterable[Part]) -> Form:
    """What is found as a whole only."""
    every = tuple(parts)
    return Form(every, least=len(every))


class _Span(NamedTuple):
    start: int
    end: int

    def span(self) -> tuple[int, int]:
        return self


class SegmentedPattern:
    """Some forms, with the face of a compiled expression."""

    def __init__(self, heads: Compiled, forms: tuple[Form, ...]) -> None:
        self._heads = heads
        self._forms = forms
        self._begun: dict[bytes, tuple[Form, ...]] = {}
        """By what was found as a head, the forms that may go on."""

    def search(self, text: bytes, start: int = 0, /) -> _Span | None:
        """The first place at which it is found, and there the longest."""
        while (head := self._heads.search(text, start)) is not None:
            begins, ends = head.span()
            forms = self._forms_of(text[begins:ends])
            furthest = max((form.end_in(text, begins) for form in forms), default=-1)
            if furthest >= 0:
                return _Span(begins, furthest)
            start = begins + 1
        return None

    def fullmatch(self, text: bytes, /) -> _Span | None:
        """The whole of the text, if that is what it describes."""
        found = self.search(text)
        return found if found == (0, len(text)) else None

    def _forms_of(self, head: bytes) -> tuple[Form, ...]:
        known = self._begun.get(head)
        if known is None:
            if len(self._begun) >= _REMEMBERED_HEADS:
                self._begun.clear()
            known = self._begun[head] = tuple(form for form in self._forms if form.begins(head))
        return known


def followed(forms: Iterable[Form]) -> tuple[Compiled, ...]:
    """The forms as what finds them."""
    by_head: dict[str, list[Form]] = {}
    for form in forms:
        by_head.setdefault(form.head, []).append(form)
    every = tuple(form for some in by_head.values() for form in some)
    return tuple(SegmentedPattern(heads, every) for heads in compiled(by_head))


@lru_cache(maxsize=_REMEMBERED_PARTS)
def part(expression: str, plain: bytes = b"") -> Part:
    """The same part each time: a form has thousands of a few different ones."""
    return Part(expression, plain)


def char_parts(text: Iterable[str], expressions: Iterable[str]) -> Iterator[Part]:
    """Parts of characters in their ways."""
    for char, expression in zip(text, expressions, strict=True):
        yield part(expression, char.encode() if expression and char in _ALONE else b"")


def _behind(part: Part, text: bytes, places: tuple[int, ...]) -> tuple[int, ...]:
    """Where the part ends that begins in one of these places."""
    expression, plain = part
    if len(places) == 1 and plain and text.startswith(plain, places[0]):
        return (places[0] + len(plain),)
    found = {end for place in places for end in _ends(expression, text, place)}
    return tuple(found)


def _ends(expression: str, text: bytes, start: int) -> Iterator[int]:
    """Where it may end, the furthest first."""
    if not expression:
        yield start
        return
    one = _compiled_segment(expression)
    found = one.match(text, start)
    if found is None:
        return
    _, furthest = found.span()
    yield furthest
    for end in range(start + 1, min(furthest, start + MOST_BYTES_PER_CHAR)):
        if one.fullmatch(text, start, end) is not None:
            yield end


@lru_cache(maxsize=_REMEMBERED_PARTS)
def _compiled_segment(expression: str) -> Anchored:
    return compiled_alone(expression)
