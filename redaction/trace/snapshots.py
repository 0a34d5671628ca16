"""Hides secrets in the page snapshots of a trace."""

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, zip_longest
from typing import Final

import re2

from redaction.compiled import Pattern, compile_re2
from redaction.matcher import begins_within
from redaction.policy import HIDDEN

_HIDDEN: Final = HIDDEN.encode()
_MARK: Final = b'"frame-snapshot"'
_STRING: Final = r'(?:[^"\\]|\\.)*'
_HEAD_BYTES: Final = 100
_PIECE_CHARS: Final = 3
_HINT_CHARS: Final = 6
_LONGEST_CHARS: Final = 64
_MASKED: Final = r"[*]|\xe2\x80\xa2|\xe2\x97\x8f|\\u2022|\\u25cf"
"""What pages show for the letters before the last typed one."""
_TYPED_CHARS: Final = 1024
"""How many characters of a typed secret are considered; nobody types more."""
_DEEPEST: Final = 100
"""How deep groups are nested; Python's `re` allows about three hundred."""
_MOST_PLACES: Final = 64
_FURTHER_BYTES: Final = 4096
"""How far beyond a hint other secrets' hints are searched for."""


@dataclass(frozen=True, slots=True)
class Markup:
    """The syntax between neighbouring texts of a page in a file format."""

    mark: bytes
    """A mark in the head of relevant lines. Empty: every line is relevant."""
    between: str
    """An expression for what is between two texts."""
    ends: str
    """Expressions for a text's end and, in `begins`, another's start."""
    begins: str
    char: Callable[[str], str]
    """Makes an expression for a character, with one code point for each byte."""


class _Pattern:
    """The expressions for one split secret, compiled when first used."""

    def __init__(self, hint: str, whole: str) -> None:
        self._sources = hint, whole

    @cached_property
    def hint(self) -> Pattern:
        return compile_freeable(self._sources[0])

    @cached_property
    def whole(self) -> Pattern:
        return compile_freeable(self._sources[1])


class SplitTexts:
    """Finds secrets that are split over neighbouring texts of a page."""

    def __init__(self, secrets: Iterable[str], markup: Markup) -> None:
        self._markup = markup
        wanted = [
            [*map(markup.char, "".join(secret.splitlines()))]
            for secret in secrets
            if len(secret) <= _LONGEST_CHARS
        ]
        wanted = [chars for chars in wanted if len(chars) > _PIECE_CHARS]
        self._hints = tuple(_hints(chars, markup) for chars in wanted)
        self.hint = "|".join(self._hints)
        """An expression that matches wherever a split secret is."""
        self._whole = tuple(f"(?:{markup.between})?".join(chars) for chars in wanted)
        self._between = re.compile(b"(" + markup.between.encode("latin-1") + b")")

    def hide(self, block: bytes) -> tuple[bytes, int]:
        """Hide split secrets; the block and how many there were."""
        if not self._markup.mark:
            is_there = self.hint and self._hint.search(block) is not None
            return self._hide_in(block) if is_there else (block, 0)
        out, at, total = [], 0, 0
        for start, end in self.lines(block):
            line, count = self._hide_in(block[start:end])
            if count:
                out += [block[at:start], line]
                at, total = end, total + count
        return (b"".join((*out, block[at:])), total) if total else (block, 0)

    def lines(self, block: bytes) -> Iterator[tuple[int, int]]:
        """Yield the ranges of the lines that may have a split secret."""
        found = self._hint.search(block) if self.hint and self._markup.mark in block else None
        while found is not None:
            start = block.rfind(b"\n", 0, found.start()) + 1
            end = block.find(b"\n", start)
            end = end if end >= 0 else len(block)
            if self._markup.mark in block[start : start + _HEAD_BYTES]:
                yield start, end
            found = self._hint.search(block, end)

    def lines_with(self, block: bytes) -> Iterator[bytes]:
        """Yield the lines that have a split secret."""
        lines = (block[start:end] for start, end in self.lines(block))
        yield from (line for line in lines if self._hide_in(line)[1])

    def may_begin_in(self, place: tuple[int, int], block: bytes) -> bool:
        """Whether a split secret may begin in the range."""
        if not self.hint or not begins_within(place, block, (self._hint,)):
            return False
        lines = block[block.rfind(b"\n", 0, place[0]) + 1 : place[1] + _HEAD_BYTES].split(b"\n")
        return any(self._markup.mark in line[:_HEAD_BYTES] for line in lines)

    def free(self) -> None:
        """Free the compiled expressions until they are used again."""
        for name in ("_hint", "_patterns"):
            self.__dict__.pop(name, None)

    @cached_property
    def _hint(self) -> Pattern:
        return compile_freeable(self.hint)

    @cached_property
    def _patterns(self) -> tuple["_Pattern", ...]:
        return tuple(map(_Pattern, self._hints, self._whole))

    def _hide_in(self, line: bytes) -> tuple[bytes, int]:
        total = 0
        for pattern in self._likely_patterns(line):
            line, count = self._hide_all(line, pattern.whole)
            total += count
        return line, total

    def _likely_patterns(self, line: bytes) -> Iterable["_Pattern"]:
        """The patterns of the secrets that may be in the line; all if there are many hints."""
        found = [*islice(self._hint.finditer(line), _MOST_PLACES + 1)]
        if len(found) > _MOST_PLACES:
            return self._patterns
        places = [line[match.start() : match.end() + _FURTHER_BYTES] for match in found]
        return [one for one in self._patterns if any(map(one.hint.search, places))]

    def _hide_all(self, line: bytes, pattern: Pattern) -> tuple[bytes, int]:
        out, at, count = [], 0, 0
        for match in pattern.finditer(line):
            parts = self._between.split(line[match.start() : match.end()])
            if len(parts) > 1:
                parts[::2] = [_HIDDEN] * len(parts[::2])
                out += [line[at : match.start()], *parts]
                at, count = match.end(), count + 1
        return (b"".join((*out, line[at:])), count) if count else (line, 0)


class TypedPrefixes:
    """Finds prefixes of typed secrets in fields, and fields with one letter of them each.

    A page may move the focus, change the letters' case, and have unrelated fields between them, so
    what the single letters spell together is not considered.
    """

    def __init__(self, typed: Iterable[str]) -> None:
        typed = tuple(typed)
        wanted = [[*map(_json_char, secret[:_TYPED_CHARS])] for secret in _select_longest(typed)]
        first = "|".join(form for chars in wanted for form in _prefix_forms(chars, at_least=1))
        grown = "|".join(
            form for chars in wanted for form in _prefix_forms(chars, at_least=_PIECE_CHARS)
        )
        field = rf'("__playwright_value_":")(?:(?:{first})(?=")|{_STRING}?(?:{grown}){_STRING})'
        letter = "|".join(map(_json_char, sorted(set(_all_cases(typed)))))
        box = rf'("(?:__playwright_value_|value)":")(?:{_MASKED})*(?:{letter})(?=")'
        # What ends with the block is taken too: of a value of megabytes each place would be tried.
        source = rf'(?:{field}|{box}|(?:{grown})(?="))("|\\?\Z)'
        encoded = source.encode("latin-1")
        self._pattern = re.compile(encoded, re.IGNORECASE) if wanted else None

    def hide(self, block: bytes) -> tuple[bytes, int]:
        """Hide them; the block and how many there were."""
        if self._pattern is None or _MARK not in block:
            return block, 0
        return self._pattern.subn(rb"\g<1>\g<2>" + _HIDDEN + rb"\g<3>", block)


def _all_cases(texts: Iterable[str]) -> Iterator[str]:
    for char in chain.from_iterable(texts):
        yield from (one for one in (char, char.upper(), char.lower()) if len(one) == 1)


def _json_char(char: str) -> str:
    return _literal(json.dumps(char, ensure_ascii=False)[1:-1])


def _html_char(char: str) -> str:
    if char.isascii() and char.isalnum():
        return char
    code = ord(char)
    ways = (_literal(char), _literal(html.escape(char)), f"&#0*{code};", f"&#[xX]0*(?i:{code:x});")
    return f"(?:{'|'.join(dict.fromkeys(ways))})"


def _literal(text: str) -> str:
    return "".join(re.escape(chr(byte)) for byte in text.encode("utf-8", "replace"))


def _select_longest(texts: Iterable[str]) -> Iterator[str]:
    """The texts that are not prefixes of others."""
    ordered = sorted(texts)
    for text, following in zip_longest(ordered, ordered[1:], fillvalue=""):
        if not following.startswith(text):
            yield text


def _prefix_forms(chars: list[str], *, at_least: int) -> Iterator[str]:
    """Expressions for every prefix of the secret, with a bounded nesting of groups."""
    for least in range(at_least, max(len(chars), at_least + 1), _DEEPEST):
        yield _prefix_form(chars[: least + _DEEPEST + 1], at_least=least)


def _prefix_form(chars: list[str], *, at_least: int) -> str:
    """An expression for the prefixes of the secret."""
    ends = ""
    for char in reversed(chars[at_least:-1]):
        ends = f"(?:{char}{ends})?"
    return "".join(chars[:at_least]) + ends


def _hints(chars: list[str], markup: Markup) -> str:
    """An expression that matches wherever the secret is split, cheaper than all splits."""
    starts = _prefix_form(chars, at_least=_PIECE_CHARS) + markup.ends
    begins = _tail_starts(chars)
    tails = (f"{markup.begins}{''.join(chars[at : at + _HINT_CHARS])}" for at in begins)
    between = markup.between.join(chars[:_PIECE_CHARS])
    return "|".join((starts, *tails, between))


def _tail_starts(chars: list[str]) -> range:
    return range(1, len(chars) - _PIECE_CHARS + 1)


_ELEMENT: Final = rf'\["[^"]*"(?:,\{{(?:[^"{{}}]|"{_STRING}")*\}})?'
_REFERENCE: Final = r"\[\[[0-9]+,[0-9]+\]"
"""A reference to an unchanged element of an earlier snapshot."""
_BLANK: Final = r'"(?: |\\[nrt])*"'

SNAPSHOTS: Final = Markup(
    mark=_MARK,
    between=rf'"\]*,(?:(?:{_ELEMENT}|{_REFERENCE}|{_BLANK})\]*,)*"',
    ends='"',
    begins='"',
    char=_json_char,
)
HTML: Final = Markup(
    mark=b"", between=r"\s*(?:<[^<>]*>\s*)+", ends=r"\s*<", begins=r">\s*", char=_html_char
)


_MEMORY_BYTES: Final = 32 << 20
"""RE2's memory; with half, the hints of 40 secrets run out of states and are four times slower."""


def compile_freeable(source: str) -> Pattern:
    """Compile an expression that can be freed."""
    expression = compile_re2(source.encode("latin-1"), memory_bytes=_MEMORY_BYTES)
    re2.purge()  # it remembers 128 expressions, which could not be let go of
    return expression
