"""Hides secrets in the page snapshots of a trace."""

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, zip_longest
from typing import Any, Final

import re2

from redaction.matcher import begins_in
from redaction.policy import HIDDEN

_HIDDEN: Final = HIDDEN.encode()
_MARK: Final = b'"frame-snapshot"'
_STRING: Final = r'(?:[^"\\]|\\.)*'
_HEAD_BYTES: Final = 100
_PIECE_CHARS: Final = 3
_HINT_CHARS: Final = 6
_LONGEST_CHARS: Final = 64
_MASKED: Final = r"[*]|\xe2\x80\xa2|\xe2\x97\x8f|\\u2022|\\u25cf"
"""What stands for letters before the last one, which some pages show for a moment."""
_TYPED_CHARS: Final = 1024
"""Of what is typed letter by letter; nobody types so much."""
_DEEPEST: Final = 100
"""So many groups lie in one another: Python's expressions take no more than three hundred."""
_MOST_PLACES: Final = 64
_FURTHER_BYTES: Final = 4096
"""Behind a place that hints at one secret, another may be hinted at."""


@dataclass(frozen=True, slots=True)
class Markup:
    """How texts of a page lie beside each other in a file."""

    mark: bytes
    """Begins the lines in question. Empty: they may be anywhere."""
    between: str
    """What stands between two texts, as an expression."""
    ends: str
    """How a text ends there, and what another begins with, as expressions."""
    begins: str
    char: Callable[[str], str]
    """How a character stands there, as an expression with one code point for each byte."""


class _Pattern:
    """Of one secret, compiled where it may be."""

    def __init__(self, hint: str, whole: str) -> None:
        self._sources = hint, whole

    @cached_property
    def hint(self) -> Any:
        return compiled(self._sources[0])

    @cached_property
    def whole(self) -> Any:
        return compiled(self._sources[1])


class SplitTexts:
    """Finds secrets whose letters are spread over neighbouring texts of a page."""

    def __init__(self, secrets: Iterable[str], markup: Markup) -> None:
        self._markup = markup
        wanted = [
            [*map(markup.char, secret)] for secret in secrets if len(secret) <= _LONGEST_CHARS
        ]
        wanted = [chars for chars in wanted if len(chars) > _PIECE_CHARS]
        self._hints = tuple(_hints(chars, markup) for chars in wanted)
        self.hint = "|".join(self._hints)
        """What is there whenever such a text is, as an expression."""
        self._whole = tuple(f"(?:{markup.between})?".join(chars) for chars in wanted)
        self._between = re.compile(b"(" + markup.between.encode("latin-1") + b")")

    def hide(self, block: bytes) -> tuple[bytes, int]:
        """The block with such texts hidden, and how many secrets they were."""
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
        """Those in which such texts may be, by where they begin and end."""
        found = self._hint.search(block) if self.hint and self._markup.mark in block else None
        while found is not None:
            start = block.rfind(b"\n", 0, found.start()) + 1
            end = block.find(b"\n", start)
            end = end if end >= 0 else len(block)
            if self._markup.mark in block[start : start + _HEAD_BYTES]:
                yield start, end
            found = self._hint.search(block, end)

    def lines_with(self, block: bytes) -> Iterator[bytes]:
        """The lines in which such texts are."""
        lines = (block[start:end] for start, end in self.lines(block))
        yield from (line for line in lines if self._hide_in(line)[1])

    def may_begin_in(self, place: tuple[int, int], block: bytes) -> bool:
        """Whether such a text may begin from the place's first byte to its last."""
        if not self.hint or not begins_in(place, block, (self._hint,)):
            return False
        lines = block[block.rfind(b"\n", 0, place[0]) + 1 : place[1] + _HEAD_BYTES].split(b"\n")
        return any(self._markup.mark in line[:_HEAD_BYTES] for line in lines)

    def let_go(self) -> None:
        """Give back memory until it is used again."""
        for name in ("_hint", "_patterns"):
            self.__dict__.pop(name, None)

    @cached_property
    def _hint(self) -> Any:
        return compiled(self.hint)

    @cached_property
    def _patterns(self) -> tuple["_Pattern", ...]:
        return tuple(map(_Pattern, self._hints, self._whole))

    def _hide_in(self, line: bytes) -> tuple[bytes, int]:
        total = 0
        for pattern in self._likely(line):
            line, count = self._hide_all(line, pattern.whole)
            total += count
        return line, total

    def _likely(self, line: bytes) -> Iterable["_Pattern"]:
        """Of the secrets that a place hints at; of all, where many do."""
        found = [*islice(self._hint.finditer(line), _MOST_PLACES + 1)]
        if len(found) > _MOST_PLACES:
            return self._patterns
        places = [line[match.start() : match.end() + _FURTHER_BYTES] for match in found]
        return [one for one in self._patterns if any(map(one.hint.search, places))]

    def _hide_all(self, line: bytes, pattern: Any) -> tuple[bytes, int]:
        out, at, count = [], 0, 0
        for match in pattern.finditer(line):
            parts = self._between.split(line[match.start() : match.end()])
            if len(parts) > 1:
                parts[::2] = [_HIDDEN] * len(parts[::2])
                out += [line[at : match.start()], *parts]
                at, count = match.end(), count + 1
        return (b"".join((*out, line[at:])), count) if count else (line, 0)


class Beginnings:
    """Finds how typed secrets grew in fields, and fields with a single letter of theirs each.

    A page may hand on the focus, write the letters in another case, and have other such fields
    among them: what they spell together is not asked.
    """

    def __init__(self, typed: Iterable[str]) -> None:
        typed = tuple(typed)
        wanted = [[*map(_in_json, secret[:_TYPED_CHARS])] for secret in _longest_of(typed)]
        first = "|".join(form for chars in wanted for form in _beginnings(chars, at_least=1))
        grown = "|".join(
            form for chars in wanted for form in _beginnings(chars, at_least=_PIECE_CHARS)
        )
        field = rf'("__playwright_value_":")(?:(?:{first})(?=")|{_STRING}?(?:{grown}){_STRING})'
        letter = "|".join(map(_in_json, sorted(set(_in_any_case(typed)))))
        box = rf'("(?:__playwright_value_|value)":")(?:{_MASKED})*(?:{letter})(?=")'
        # What ends with the block is taken too: of a value of megabytes each place would be tried.
        source = rf'(?:{field}|{box}|(?:{grown})(?="))("|\\?\Z)'
        encoded = source.encode("latin-1")
        self._pattern = re.compile(encoded, re.IGNORECASE) if wanted else None

    def hide(self, block: bytes) -> tuple[bytes, int]:
        """The block without them, and how many there were."""
        if self._pattern is None or _MARK not in block:
            return block, 0
        return self._pattern.subn(rb"\g<1>\g<2>" + _HIDDEN + rb"\g<3>", block)


def _in_any_case(texts: Iterable[str]) -> Iterator[str]:
    for char in chain.from_iterable(texts):
        yield from (one for one in (char, char.upper(), char.lower()) if len(one) == 1)


def _in_json(char: str) -> str:
    return _literal(json.dumps(char, ensure_ascii=False)[1:-1])


def _in_html(char: str) -> str:
    if char.isascii() and char.isalnum():
        return char
    code = ord(char)
    ways = (_literal(char), _literal(html.escape(char)), f"&#0*{code};", f"&#[xX]0*(?i:{code:x});")
    return f"(?:{'|'.join(dict.fromkeys(ways))})"


def _literal(text: str) -> str:
    return "".join(re.escape(chr(byte)) for byte in text.encode("utf-8", "replace"))


def _longest_of(texts: Iterable[str]) -> Iterator[str]:
    """Those with which no other begins."""
    ordered = sorted(texts)
    for text, following in zip_longest(ordered, ordered[1:], fillvalue=""):
        if not following.startswith(text):
            yield text


def _beginnings(chars: list[str], *, at_least: int) -> Iterator[str]:
    """Every beginning of the secret; of groups only so many lie in each other."""
    for least in range(at_least, max(len(chars), at_least + 1), _DEEPEST):
        yield _grown(chars[: least + _DEEPEST + 1], at_least=least)


def _grown(chars: list[str], *, at_least: int) -> str:
    """A beginning of the secret."""
    ends = ""
    for char in reversed(chars[at_least:-1]):
        ends = f"(?:{char}{ends})?"
    return "".join(chars[:at_least]) + ends


def _hints(chars: list[str], markup: Markup) -> str:
    """What is there whenever the secret is split: cheaper to look for than all its splits."""
    starts = _grown(chars, at_least=_PIECE_CHARS) + markup.ends
    begins = _tail_starts(chars)
    tails = (f"{markup.begins}{''.join(chars[at : at + _HINT_CHARS])}" for at in begins)
    between = markup.between.join(chars[:_PIECE_CHARS])
    return "|".join((starts, *tails, between))


def _tail_starts(chars: list[str]) -> range:
    return range(1, len(chars) - _PIECE_CHARS + 1)


_ELEMENT: Final = rf'\["[^"]*"(?:,\{{(?:[^"{{}}]|"{_STRING}")*\}})?'
_REFERENCE: Final = r"\[\[[0-9]+,[0-9]+\]"
"""An element that is as it was in a snapshot before."""
_BLANK: Final = r'"(?: |\\[nrt])*"'

SNAPSHOTS: Final = Markup(
    mark=_MARK,
    between=rf'"\]*,(?:(?:{_ELEMENT}|{_REFERENCE}|{_BLANK})\]*,)*"',
    ends='"',
    begins='"',
    char=_in_json,
)
HTML: Final = Markup(
    mark=b"", between=r"\s*(?:<[^<>]*>\s*)+", ends=r"\s*<", begins=r">\s*", char=_in_html
)


_MEMORY_BYTES: Final = 32 << 20
"""With half of it the hints at 40 secrets run out of states, and take four times as long."""


def compiled(source: str) -> Any:
    """The expression, with one code point for each byte."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    expression = re2.compile(source.encode("latin-1"), options)
    re2.purge()  # it remembers 128 expressions, which could not be let go of
    return expression
