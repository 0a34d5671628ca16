"""Expressions compiled by RE2, as a whole or segment by segment.

A long form is compiled by its head only, and the rest is matched part by part: a character in all
its spellings takes RE2 several kilobytes, so ten secrets of a thousand characters would take
700 MB. There are few different parts, and each is compiled once.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Final, NamedTuple

import re2

from redaction.encodings import LETTERS_AND_DIGITS, MOST_BYTES_PER_CHAR, limit_backslashes

LIMIT_CHARS: Final = 200_000
"""The size up to which expressions are joined: ten secrets make one, forty make two."""
MEMORY_LIMIT_BYTES: Final = 64 << 20
"""RE2's memory for one expression; with half, large ones run out of states and drop to 1 MB/s."""


Pattern = re.Pattern[bytes]
"""The type of RE2's expressions: the library has the methods of `re` and no types of its own."""


def compile_re2(
    source: bytes,
    *,
    memory_bytes: int = 8 << 20,
    longest_match: bool = False,
    never_capture: bool = False,
) -> Pattern:
    """Compile an expression that has one code point for each byte."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = memory_bytes
    options.longest_match = longest_match
    options.dot_nl = longest_match
    options.never_capture = never_capture
    options.log_errors = False
    expression: Pattern = re2.compile(source, options)
    return expression


def compile_forms(forms: Iterable[str], *, limit_chars: int = LIMIT_CHARS) -> tuple[Pattern, ...]:
    """Compile the forms into as few expressions of at most that size as possible."""
    return tuple(_compile_form(source) for source in _join(forms, limit_chars))


@cache
def compile_once(form: str) -> tuple[Pattern, ...]:
    """Compile a constant form once."""
    return compile_forms([form])


def contains_form(form: str, text: bytes) -> bool:
    """Whether a constant form matches anywhere in the text."""
    return any(expression.search(text) is not None for expression in compile_once(form))


def find_overlapping(
    expression: "Pattern | SegmentedPattern", text: bytes
) -> Iterator[tuple[int, int]]:
    """Yield every match, including those that overlap an earlier one."""
    found = expression.search(text)
    while found is not None:
        start, end = found.span()
        yield start, end
        found = expression.search(text, start + 1)


def find_separate(expression: Pattern, text: bytes) -> Iterator[tuple[int, int]]:
    """Yield the matches that do not overlap."""
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


def _compile_form(source: str) -> Pattern:
    encoded = source.encode("latin-1")
    # The longest match includes all others that begin at the same place.
    expression = compile_re2(encoded, memory_bytes=MEMORY_LIMIT_BYTES, longest_match=True)
    re2.purge()  # it remembers 128 expressions, of which each may hold all its memory
    return expression


HEAD_PARTS: Final = 8
"""How many parts of a long form are compiled together as its head."""
_REMEMBERED_PARTS: Final = 512
_REMEMBERED_HEADS: Final = 1024
_ALONE: Final = LETTERS_AND_DIGITS | set("!#$()*+,-./:;<>?@[]^_`{|}~")
"""Characters that begin none of their longer spellings, unlike `&`, which begins `&amp;`."""


class Part(NamedTuple):
    """The smallest segment of a form: a character, or a letter of an encoding."""

    expression: str
    plain: bytes = b""
    """The usual spelling, if it begins no other one; empty otherwise."""


class Form(NamedTuple):
    """One encoded form of a text, part by part."""

    parts: tuple[Part, ...]
    min_parts: int
    """How many parts, from the first one, make a match."""
    after: str = ""
    """An expression for what may follow the last part."""

    @property
    def whole(self) -> str:
        """The whole form as one expression."""
        return limit_backslashes("".join(part.expression for part in self.parts))

    @property
    def head(self) -> str:
        """The first parts of the form as one expression."""
        parts = self.parts[: self.min_parts if self.min_parts < len(self.parts) else HEAD_PARTS]
        return limit_backslashes("".join(part.expression for part in parts))

    def end_in(self, text: bytes, start: int) -> int:
        """The furthest end of a match that begins at `start`. -1: there is none."""
        ends = -1
        places: tuple[int, ...] = (start,)
        for number, part in enumerate(self.parts):
            if number >= self.min_parts:
                ends = max(ends, *places)
            places = _match_part(part, text, places)
            if not places:
                break
        ends = max(ends, *places, -1)
        further = _find_ends(self.after, text, ends) if self.after and ends >= 0 else ()
        return max(ends, *further, -1)

    def begins(self, head: bytes) -> bool:
        """Whether a matched head is the head of this form."""
        places: tuple[int, ...] = (0,)
        for part in self.parts[: min(self.min_parts, HEAD_PARTS)]:
            places = _match_part(part, head, places)
        return bool(places)


def whole_form(parts: Iterable[Part]) -> Form:
    """Make a form that only matches as a whole."""
    every = tuple(parts)
    return Form(every, min_parts=len(every))


class _Span(NamedTuple):
    start: int
    end: int

    def span(self) -> tuple[int, int]:
        return self


class SegmentedPattern:
    """Long forms with the interface of a compiled expression."""

    def __init__(self, heads: Pattern, forms: tuple[Form, ...]) -> None:
        self._heads = heads
        self._forms = forms
        self._begun: dict[bytes, tuple[Form, ...]] = {}
        """The forms that a matched head may begin, by the head."""

    def search(self, text: bytes, start: int = 0, /) -> _Span | None:
        """The first match, and at its place the longest."""
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


def compile_segmented(forms: Iterable[Form]) -> tuple[SegmentedPattern, ...]:
    """Compile the heads of long forms and join those that share one."""
    by_head: dict[str, list[Form]] = {}
    for form in forms:
        by_head.setdefault(form.head, []).append(form)
    every = tuple(form for some in by_head.values() for form in some)
    return tuple(SegmentedPattern(heads, every) for heads in compile_forms(by_head))


@lru_cache(maxsize=_REMEMBERED_PARTS)
def part(expression: str, plain: bytes = b"") -> Part:
    """Reuse equal parts: a form has thousands of a few different ones."""
    return Part(expression, plain)


def char_parts(text: Iterable[str], expressions: Iterable[str]) -> Iterator[Part]:
    """Make parts of characters and the expressions for their spellings."""
    for char, expression in zip(text, expressions, strict=True):
        yield part(expression, char.encode() if expression and char in _ALONE else b"")


def _match_part(part: Part, text: bytes, places: tuple[int, ...]) -> tuple[int, ...]:
    """The ends of a part that begins at one of these places."""
    expression, plain = part
    if len(places) == 1 and plain and text.startswith(plain, places[0]):
        return (places[0] + len(plain),)
    found = {end for place in places for end in _find_ends(expression, text, place)}
    return tuple(found)


def _find_ends(expression: str, text: bytes, start: int) -> Iterator[int]:
    """Yield every end of a match that begins at `start`, the furthest first."""
    if not expression:
        yield start
        return
    one = _compile_part(expression)
    found = one.match(text, start)
    if found is None:
        return
    _, furthest = found.span()
    yield furthest
    for end in range(start + 1, min(furthest, start + MOST_BYTES_PER_CHAR)):
        if one.fullmatch(text, start, end) is not None:
            yield end


@lru_cache(maxsize=_REMEMBERED_PARTS)
def _compile_part(expression: str) -> Pattern:
    return _compile_form(expression)
