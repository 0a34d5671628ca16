"""Expressions compiled by RE2: linear in the text whatever the expression, in bounded memory."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, Protocol

import re2

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
    return tuple(_compiled(source) for source in _joined(forms, limit_chars))


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


def _joined(forms: Iterable[str], limit_chars: int) -> Iterator[str]:
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
