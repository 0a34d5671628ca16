"""Find every stretch of bytes that carries a secret, also beneath encodings.

One look tells where there is a part of a secret or a sign of an encoding, which is rare. What
stands around is searched closely, decoded, and searched again.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final

from runners.kit.secrets.bricks import GROWTH, MOST_BYTES_PER_CHAR
from runners.kit.secrets.compiled import Compiled, apart, compiled, compiled_once, spans
from runners.kit.secrets.cores import cores
from runners.kit.secrets.covers import Cover, united, without_cut_escape
from runners.kit.secrets.forms import MIXED_LIMIT_CHARS, text_forms, usual_forms, whole_forms
from runners.kit.secrets.view import Kind
from runners.kit.secrets.views import sign_runs, views
from runners.kit.secrets.whole import kind_of

WHOLE_LIMIT_CHARS: Final = 8192
"""Longer secrets are looked for as plain text in their usual forms."""
DEEPEST: Final = 3
"""How many encodings over one another are undone; the forms themselves know one more."""

_ZERO: Final = b"\\u0000"
_WINDOW_BYTES: Final = 1 << 15
"""What is decoded at a time."""
_LEAST_REACH_BYTES: Final = 64
_REACH_BYTES_PER_CHAR: Final = 16
_REACH_BYTES_PER_FURTHER_CHAR: Final = 4
_FURTHER_CHARS: Final = 512


class Search:
    """Looks for a set of secrets. What it needs is compiled when it is first used."""

    def __init__(self, secrets: tuple[str, ...]) -> None:
        short = [secret for secret in secrets if len(secret) <= WHOLE_LIMIT_CHARS]
        long = [secret for secret in secrets if len(secret) > WHOLE_LIMIT_CHARS]
        longest = max(map(len, short), default=0)
        self._reach = _reach_bytes(longest)
        mixed = MOST_BYTES_PER_CHAR * (min(longest, MIXED_LIMIT_CHARS) + 1)
        self._far = max(self._reach, mixed)
        """How far a form may go on beyond its core."""
        self._long = [form.encode() for secret in long for form in usual_forms(secret)]
        self._text_forms = [form for secret in short for form in text_forms(secret)]
        self._whole_forms = [form for secret in short for form in whole_forms(secret)]
        self._cores = [core for secret in short for core in cores(secret)]
        self.size_chars = sum(map(len, (*self._text_forms, *self._whole_forms)))

    def may_find(self, encoded: bytes) -> bool:
        """Whether any of the texts that were encoded as JSON holds a secret: most hold none."""
        # Wide characters do not look like any in JSON.
        return _ZERO in encoded or next(self._found(encoded, DEEPEST), None) is not None

    def let_go(self) -> None:
        """Give back the memory of what was compiled; the next look compiles it anew."""
        for name in ("_look", "_forms", "_text"):
            self.__dict__.pop(name, None)

    def covers(self, text: bytes) -> list[Cover]:
        """What is covered, in order; no two overlap."""
        found = self._found(text, DEEPEST)
        return united(without_cut_escape(text, cover) for cover in found)

    def _found(self, text: bytes, deeper: int) -> Iterator[Cover]:
        for form in self._long:
            yield from _plain(text, form)
        seen = sorted(span for expression in self._look for span in apart(expression, text))
        for start, end in _around(seen, self._far, len(text)):
            yield from _moved(start, self._direct(text[start:end]))
        for start, end in _around(seen, self._reach, len(text)) if deeper else ():
            for window_start, window_end in self._windows(start, end):
                beneath = self._beneath(text[window_start:window_end], deeper)
                yield from _moved(window_start, beneath)

    def _direct(self, stretch: bytes) -> Iterator[Cover]:
        for expression in self._forms:
            for start, end in spans(expression, stretch):
                yield Cover(start, end, self._kind(stretch[start:end]))

    def _beneath(self, window: bytes, deeper: int) -> Iterator[Cover]:
        """What is covered in what the window reads decoded."""
        for view in views(window):
            for cover in united(self._found(view.content, deeper - 1)):
                start, end = view.place(cover.start, cover.end - 1)
                yield Cover(start, end, cover.kind if view.kind is Kind.TEXT else view.kind)

    def _kind(self, covered: bytes) -> Kind:
        """What is written character by character may look like base64 and is none."""
        if any(expression.fullmatch(covered) is not None for expression in self._text):
            return Kind.TEXT
        return kind_of(covered)

    def _windows(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """A stretch in windows of bounded size that share what a secret may fill."""
        size = max(_WINDOW_BYTES, 4 * self._reach)
        while end - start > size:
            yield start, start + size
            start += size - 2 * self._reach
        yield start, end

    @cached_property
    def _look(self) -> tuple[Compiled, ...]:
        base64, *others = sign_runs()
        return (*compiled_once(base64), *compiled([*others, GROWTH, *self._cores]))

    @cached_property
    def _forms(self) -> tuple[Compiled, ...]:
        return compiled([*self._text_forms, *self._whole_forms])

    @cached_property
    def _text(self) -> tuple[Compiled, ...]:
        return compiled(self._text_forms)


def _around(seen: Iterable[tuple[int, int]], reach: int, size: int) -> Iterator[tuple[int, int]]:
    """What stands around the places, as far as that; no two touch."""
    start = end = 0
    for seen_start, seen_end in seen:
        if seen_start - reach > end:
            if end:
                yield start, end
            start = max(0, seen_start - reach)
        end = max(end, min(size, seen_end + reach))
    if end:
        yield start, end


def _reach_bytes(chars: int) -> int:
    """How far a secret may go on beyond a sign of how it is encoded."""
    near = _REACH_BYTES_PER_CHAR * min(chars, _FURTHER_CHARS)
    further = _REACH_BYTES_PER_FURTHER_CHAR * max(0, chars - _FURTHER_CHARS)
    return _LEAST_REACH_BYTES + near + further


def _moved(start: int, covers: Iterator[Cover]) -> Iterator[Cover]:
    for cover in covers:
        yield cover._replace(start=start + cover.start, end=start + cover.end)


def _plain(text: bytes, form: bytes) -> Iterator[Cover]:
    start = text.find(form)
    while start != -1:
        yield Cover(start, start + len(form), Kind.TEXT)
        start = text.find(form, start + len(form))
