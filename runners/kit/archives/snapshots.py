"""Secrets in snapshots of a page: grown letter by letter in a field, or split over its elements."""

import html
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import re2

from runners.kit.sensitive import HIDDEN

_HIDDEN: Final = HIDDEN.encode()
_MARK: Final = b'"frame-snapshot"'
_STRING: Final = r'(?:[^"\\]|\\.)*'
_HEAD_BYTES: Final = 100
_PIECE_CHARS: Final = 3
_LONGEST_CHARS: Final = 64
_MEMORY_BYTES: Final = 16 << 20


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


class SplitTexts:
    """Finds secrets whose letters are spread over neighbouring texts of a page."""

    def __init__(self, secrets: Iterable[str], markup: Markup) -> None:
        self._markup = markup
        wanted = [
            [*map(markup.char, secret)] for secret in secrets if len(secret) <= _LONGEST_CHARS
        ]
        wanted = [chars for chars in wanted if len(chars) > _PIECE_CHARS]
        self.hint = "|".join(_hints(chars, markup) for chars in wanted)
        """What is there whenever such a text is, as an expression."""
        self._hint = _compile(self.hint) if wanted else None
        self._whole = tuple(f"(?:{markup.between})?".join(chars) for chars in wanted)
        self._between = re.compile(b"(" + markup.between.encode("latin-1") + b")")
        self._compiled: tuple[Any, ...] = ()

    def hide(self, block: bytes) -> tuple[bytes, int]:
        """The block with such texts hidden, and how many secrets they were."""
        if self._hint is None:
            return block, 0
        self._compiled = self._compiled or tuple(map(_compile, self._whole))
        if not self._markup.mark:
            return self._hide_in(block) if self._hint.search(block) else (block, 0)
        lines, total = block.split(b"\n"), 0
        for at, line in enumerate(lines):
            if self._markup.mark in line[:_HEAD_BYTES] and self._hint.search(line) is not None:
                lines[at], count = self._hide_in(line)
                total += count
        return (b"\n".join(lines), total) if total else (block, 0)

    def _hide_in(self, line: bytes) -> tuple[bytes, int]:
        total = 0
        for pattern in self._compiled:
            line, count = self._hide_all(line, pattern)
            total += count
        return line, total

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
    """Finds how typed secrets grew in fields."""

    def __init__(self, typed: Iterable[str]) -> None:
        wanted = [[*map(_in_json, secret)] for secret in sorted(typed)]
        first = "|".join(_grown(chars, at_least=1) for chars in wanted)
        grown = "|".join(_grown(chars, at_least=_PIECE_CHARS) for chars in wanted)
        field = rf'("__playwright_value_":")(?:(?:{first})"|{_STRING}?(?:{grown}){_STRING}")'
        source = rf'{field}|()(?:{grown})"'
        self._pattern = re.compile(source.encode("latin-1")) if wanted else None

    def hide(self, block: bytes) -> tuple[bytes, int]:
        """The block without them, and how many there were."""
        if self._pattern is None or _MARK not in block:
            return block, 0
        return self._pattern.subn(rb"\g<1>\g<2>" + _HIDDEN + b'"', block)


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


def _grown(chars: list[str], *, at_least: int) -> str:
    """A beginning of the secret."""
    ends = ""
    for char in reversed(chars[at_least:-1]):
        ends = f"(?:{char}{ends})?"
    return "".join(chars[:at_least]) + ends


def _hints(chars: list[str], markup: Markup) -> str:
    """What is there whenever the secret is split: cheaper to look for than all its splits."""
    starts = _grown(chars, at_least=_PIECE_CHARS) + markup.ends
    tails = (f"{markup.begins}{''.join(chars[at:])}" for at in _tail_starts(chars))
    between = markup.between.join(chars[:_PIECE_CHARS])
    return "|".join((starts, *tails, between))


def _tail_starts(chars: list[str]) -> range:
    return range(1, len(chars) - _PIECE_CHARS + 1)


def _compile(source: str) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    return re2.compile(source.encode("latin-1"), options)


SNAPSHOTS: Final = Markup(
    mark=_MARK,
    between=rf'"\]*,(?:\["[^"]*"(?:,\{{(?:[^"{{}}]|"{_STRING}")*\}})?\]*,)*"',
    ends='"',
    begins='"',
    char=_in_json,
)
HTML: Final = Markup(
    mark=b"", between=r"\s*(?:<[^<>]*>\s*)+", ends=r"\s*<", begins=r">\s*", char=_in_html
)
