"""Regular expressions that people write: RE2, so that none of them can run away."""

from functools import lru_cache
from typing import Final, Protocol

import re2

MAX_PATTERN_CHARS: Final = 10_000
_MISSING: Final = "look-around and back-references are not available here"
_MISSING_MARKS: Final = ("invalid perl operator", "invalid escape sequence: \\")


class BadPatternError(ValueError):
    """A pattern that cannot be used; the text says why."""


class Found(Protocol):
    """A place where a pattern matched."""

    def group(self, number: int = 0, /) -> bytes | None:
        """The text of a group. None: the group took no part."""


class Pattern(Protocol):
    """A compiled pattern."""

    @property
    def groups(self) -> int:
        """How many capture groups it has."""

    def search(self, text: bytes, /) -> Found | None:
        """The first match anywhere. None: there is none."""

    def fullmatch(self, text: bytes, /) -> Found | None:
        """A match of the whole text. None: there is none."""


@lru_cache(maxsize=1024)
def compile_pattern(source: str) -> Pattern:
    """Compile a pattern for UTF-8 text, or take it from the cache.

    Raises:
        BadPatternError: with the reason, RE2's missing features named.
    """
    if len(source) > MAX_PATTERN_CHARS:
        raise BadPatternError(f"it has {len(source)} characters; use at most {MAX_PATTERN_CHARS}")
    options = re2.Options()
    options.log_errors = False
    try:
        pattern: Pattern = re2.compile(as_bytes(source), options)
    except re2.error as problem:
        raise BadPatternError(_reason(problem.args[0])) from None
    return pattern


def first_group(source: str, text: str) -> str | None:
    """The first capture group, or the whole match of a pattern without groups. None: no match.

    Raises:
        BadPatternError: the pattern cannot be used.
    """
    pattern = compile_pattern(source)
    found = pattern.search(as_bytes(text))
    if found is None:
        return None
    group = found.group(1 if pattern.groups else 0)
    return None if group is None else group.decode("utf-8", "replace")


def as_bytes(text: str) -> bytes:
    """UTF-8 that a lone surrogate does not stop."""
    return text.encode("utf-8", "surrogatepass")


def _reason(problem: bytes) -> str:
    reason = problem.decode("utf-8", "replace")
    return f"{reason} ({_MISSING})" if reason.startswith(_MISSING_MARKS) else reason
