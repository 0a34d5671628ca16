"""Bodies of messages as people read them: JSON indented, and what was hidden marked."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from service.vault.texts import HIDDEN

_MOST_PARSED: Final = 512 * 1024
_MOST_COLOURED: Final = 48 * 1024
_MOST_SHOWN: Final = 256 * 1024
_TOKENS: Final = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*"(?=\s*:))|(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<word>\b(?:true|false|null)\b)"
)


class Piece(NamedTuple):
    """A part of a text."""

    kind: str
    """`key`, `string`, `number`, `word`, `hidden`; empty: nothing special."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A text that is shown."""

    pieces: tuple[Piece, ...]
    lines: int
    is_json: bool
    is_long: bool
    """Its end is left off here."""
    has_hidden: bool


def read_body(text: str) -> Body:
    """A body for people."""
    pretty = format_json(text)
    shown = text if pretty is None else pretty
    is_long = len(shown) > _MOST_SHOWN
    shown = shown[:_MOST_SHOWN]
    is_json = pretty is not None
    return Body(
        pieces=tuple(_colour(shown) if is_json and len(shown) <= _MOST_COLOURED else mark(shown)),
        lines=shown.count("\n") + 1,
        is_json=is_json,
        is_long=is_long,
        has_hidden=HIDDEN in text,
    )


def format_json(text: str) -> str | None:
    """JSON with a line for each member. None: it is none, or no object and no array."""
    if len(text) > _MOST_PARSED or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def mark(text: str) -> Iterator[Piece]:
    """A text with what was hidden in it apart."""
    return _mark("", text)


def _mark(kind: str, text: str) -> Iterator[Piece]:
    for number, part in enumerate(text.split(HIDDEN)):
        if number:
            yield Piece("hidden", "hidden")
        if part:
            yield Piece(kind, part)


def _colour(text: str) -> Iterator[Piece]:
    at = 0
    for found in _TOKENS.finditer(text):
        if found.start() > at:
            yield from mark(text[at : found.start()])
        yield from _mark(found.lastgroup or "", found.group())
        at = found.end()
    if at < len(text):
        yield from mark(text[at:])
