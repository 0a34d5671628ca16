"""Finds every span of bytes that carries a secret, through nested encodings too.

A prefilter finds cores of secrets and signs of encodings, which are rare. What surrounds them is
matched against the secrets' forms, decoded, and searched again.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import Final, NamedTuple

from redaction.compiled import (
    Form,
    Pattern,
    SegmentedPattern,
    compile_forms,
    compile_once,
    compile_segmented,
    find_overlapping,
    find_separate,
)
from redaction.decoders import Kind, decode_views, sign_runs
from redaction.encodings import GROWTH, MOST_BYTES_PER_CHAR
from redaction.forms import (
    MIXED_LIMIT_CHARS,
    Prefixes,
    guess_kind,
    long_text_forms,
    long_whole_forms,
    text_cores,
    text_forms,
    usual_forms,
    whole_cores,
    whole_forms,
)
from redaction.policy import shortest_prefix

Places = Sequence[tuple[int, int]]
"""Ranges of a text."""


def find_each(expressions: Iterable[Pattern], text: bytes) -> Iterator[tuple[int, int]]:
    """Yield the matches of each expression that do not overlap."""
    return (place for expression in expressions for place in find_separate(expression, text))


def begins_within(place: tuple[int, int], text: bytes, expressions: Iterable[Pattern]) -> bool:
    """Whether one of them matches at any byte of the range."""
    start, end = place
    return any(
        expression.match(text, at) is not None
        for expression in expressions
        for at in range(start, end)
    )


def around(seen: Iterable[tuple[int, int]], reach: int, size: int) -> Iterator[tuple[int, int]]:
    """Widen the ranges by `reach` on both sides and merge those that touch."""
    start = end = 0
    for seen_start, seen_end in seen:
        if seen_start - reach > end:
            if end:
                yield start, end
            start = max(0, seen_start - reach)
        end = max(end, min(size, seen_end + reach))
    if end:
        yield start, end


_CUT_ESCAPE: Final = re.compile(
    rb"(?:\\+(?:u[0-9A-Fa-f]{0,3}|x[0-9A-Fa-f]?)|%(?:25)*[0-9A-Fa-f]?)\Z"
)
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_LONGEST_ESCAPE_BYTES: Final = 64
_ONE_LETTER: Final = re.compile(
    rb"%(?:25)*[0-9A-Fa-f]{2}|\\+(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[0-7]{3})|&#[0-9A-Fa-fxX]+;"
)
_OWN_QUOTE: Final = re.compile(rb'(?<!\\)(?:\\\\)*"')
_LETTER: Final = re.compile(rb"[A-Za-z0-9+/_\-]")
_BASE64_STARS: Final = b"Kioq" * 4
_NUMBER_STARS: Final = b",".join([b"42"] * 9)
_HEX_STARS: Final = b"2a" * 12


class Span(NamedTuple):
    """A range of bytes that carries a secret."""

    start: int
    end: int
    kind: Kind


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Sort the spans and merge those that overlap."""
    found: list[Span] = []
    for span in sorted(spans):
        if found and span.start < found[-1].end:
            last = found[-1]
            found[-1] = Span(last.start, max(last.end, span.end), max(last.kind, span.kind))
        else:
            found.append(span)
    return found


def clip(text: bytes, span: Span) -> Span:
    """Adjust the span so that replacing it breaks no escape at either end."""
    return _exclude_quote_escape(text, include_escape(text, span))


def include_escape(text: bytes, span: Span) -> Span:
    r"""Extend the span to the start of an escape: half of `\u0041` breaks JSON."""
    slashes = _count_slashes(text, span.start)
    if slashes and (slashes % 2 or text[span.start] == ord("\\")):
        # One that stands alone escapes the first byte; a run belongs to the escape that it begins.
        taken = slashes if text[span.start] == ord("\\") else 1
        return span._replace(start=span.start - taken)
    escape = _CUT_ESCAPE.search(text[max(0, span.start - _LONGEST_ESCAPE_BYTES) : span.start])
    if escape is None or text[span.start] not in _HEX:
        return span
    return span._replace(start=span.start - len(escape.group()))


def _exclude_quote_escape(text: bytes, span: Span) -> Span:
    r"""Shorten the span by the backslash of a quote after it, which would end JSON's string."""
    if text[span.end - 1 : span.end + 1] != b'\\"' or not _count_slashes(text, span.end) % 2:
        return span
    return span._replace(end=span.end - 1)


def _count_slashes(text: bytes, at: int) -> int:
    """The length of the run of backslashes that ends at `at`."""
    looked = _LONGEST_ESCAPE_BYTES
    while True:
        before = text[max(0, at - looked) : at]
        slashes = len(before) - len(before.rstrip(b"\\"))
        if slashes < looked:
            return slashes
        looked *= 2


def make_replacement(covered: bytes, kind: Kind, *, shown: bytes) -> bytes:
    """The replacement of a span, in its encoding, so that the text can still be decoded."""
    match kind:
        case Kind.TEXT:
            return _quote(covered, shown) if b'"' in covered else shown
        case Kind.WIDE:
            # Zeros that are written as escapes stand in a text, which holds none.
            return _wide(covered, shown) if b"\0" in covered else shown
        case Kind.HEX:
            return _HEX_STARS[: 18 + 2 * (_letters(covered) % 2)]
        case Kind.NUMBERS:
            return _NUMBER_STARS
        case Kind.BASE64:
            return _BASE64_STARS[: 12 + _letters(covered) % 4]


def _quote(covered: bytes, shown: bytes) -> bytes:
    r"""Add the quotes of JSON that the span covered; quotes within strings are escaped."""
    quotes = [found.end() - 1 for found in _OWN_QUOTE.finditer(covered)]
    if not quotes:
        return shown
    is_value = covered[:1] in (b"{", b"[") and covered[-1:] in (b"}", b"]")
    before = b'"' if is_value or quotes[0] == 0 else b""
    after = b'"' if is_value or quotes[-1] == len(covered) - 1 else b""
    return before + shown + after


def _letters(covered: bytes) -> int:
    """Count the letters of base64, which decide the alignment of the rest."""
    return len(_LETTER.findall(_ONE_LETTER.sub(b"+", covered)))


def _wide(covered: bytes, shown: bytes) -> bytes:
    """The text in the replaced text's width and byte alignment."""
    width = 4 if b"\0\0" in covered else 2
    first, rest = len(covered) - len(covered.lstrip(b"\0")), len(covered) % width
    wide = b"".join(b"\0" * (width - 1) + bytes([byte]) for byte in shown)
    wide = wide[width - 1 - first % width :]
    return wide + b"\0" * ((rest - len(wide)) % width)


DEEPEST: Final = 3
"""How many nested encodings are decoded; the forms cover one more."""

_GROUP_SECRETS: Final = 4
"""How many secrets share an expression: the cost of a state grows with their number."""
_WHOLE_FORMS_CHARS: Final = 20_000
"""The size of one expression of whole forms: RE2 holds the interpreter's lock while compiling."""
_ZERO: Final = b"\\u0000"
_WINDOW_BYTES: Final = 1 << 15
"""How much is decoded at a time."""
_LEAST_REACH_BYTES: Final = 64
_REACH_BYTES_PER_CHAR: Final = 16
_REACH_BYTES_PER_FURTHER_CHAR: Final = 4
_FURTHER_CHARS: Final = 512


_Sources = Callable[[], Iterable[str]]
"""Makes expressions when they are first needed."""
_Followed = Callable[[], Iterable[Form]]
"""Makes the forms that are too long to be compiled, when they are first needed."""


class _Group:
    """A few secrets; their forms are compiled only once a core of theirs is found."""

    def __init__(self, cores: _Sources, forms: _Sources, followed: _Followed) -> None:
        """`cores`: expressions of which one matches wherever one of the forms does."""
        self._sources = cores, forms, followed

    def find(self, stretch: bytes) -> Iterator[Span]:
        """Yield where a stretch of text has one of the secrets."""
        if any(expression.search(stretch) is not None for expression in self._cores):
            for expression in self._forms:
                yield from (
                    Span(*span, Kind.TEXT) for span in find_overlapping(expression, stretch)
                )

    @cached_property
    def _cores(self) -> tuple[Pattern | SegmentedPattern, ...]:
        return compile_forms(self._sources[0]())

    @cached_property
    def _forms(self) -> tuple[Pattern | SegmentedPattern, ...]:
        _, forms, further = self._sources
        return (*compile_forms(forms()), *compile_segmented(further()))


class MatchResult(NamedTuple):
    """What one search has found."""

    spans: list[Span] | None
    """Where secrets are. None: there are too many places to say."""
    hints: tuple[tuple[int, int], ...]
    """Ranges in which the hint begins."""


class SecretMatcher:
    """Searches for a set of secrets; expressions are compiled when first used."""

    def __init__(
        self, secrets: tuple[str, ...], *, typed: Iterable[str] = (), hint: str = ""
    ) -> None:
        """`typed`: those that were typed letter by letter, whose prefixes are secret too.

        `hint`: a further expression to search for in the same pass.
        """
        short = [secret for secret in secrets if len(secret) <= MIXED_LIMIT_CHARS]
        long = [secret for secret in secrets if len(secret) > MIXED_LIMIT_CHARS]
        longest = max(map(len, short), default=0)
        self._reach = _reach_bytes(longest)
        self._far = max(self._reach, MOST_BYTES_PER_CHAR * (longest + 1))
        """How many bytes a form may extend beyond its core."""
        self._long = [form.encode() for secret in long for form in usual_forms(secret)]
        self._short = short
        self._hint = hint
        self._typed = [Prefixes(secret) for secret in typed if shortest_prefix(secret) is not None]

    @cached_property
    def size_chars(self) -> int:
        """The size of all expressions, a measure of their memory."""
        grown = (form for one in self._typed for form in one.text_forms())
        further = (*grown, *_long_text_forms(self._short), *self._long_whole_forms())
        heads = (form.head for form in further)
        return sum(map(len, (*_text_forms(self._short), *self._whole_forms(), *heads)))

    def may_match(self, encoded: bytes) -> bool:
        """Whether a text encoded as JSON may have a secret; most have none."""
        # Wide characters do not look like any in JSON.
        return _ZERO in encoded or next(self._find(encoded, DEEPEST), None) is not None

    def free(self) -> None:
        """Free the compiled expressions; the next search compiles them again."""
        for name in ("_prefilter", "_hint_prefilter", "_hints", "_groups", "_whole"):
            self.__dict__.pop(name, None)

    def free_hint(self) -> None:
        """Free the memory of the expressions that also find the hint."""
        for name in ("_hint_prefilter", "_hints"):
            self.__dict__.pop(name, None)

    def find(self, text: bytes) -> list[Span]:
        """Find all secrets; the spans are in order and do not overlap."""
        found = self._find(text, DEEPEST)
        return merge_spans(clip(text, span) for span in found)

    def find_few(self, text: bytes, *, most: int) -> list[Span] | None:
        """Find at most that many secrets. None: there are more."""
        return _first(self._find(text, DEEPEST), text, most=most)

    def find_with_hint(self, text: bytes, *, most: int) -> MatchResult | None:
        """Find secrets and the hint in one pass. None: the prefilter matched too often."""
        base64 = list(islice(find_each(_base64(), text), most + 1))
        places = list(islice(find_each(self._hint_prefilter, text), most + 1 - len(base64)))
        if len(base64) + len(places) > most:
            return None
        hints = tuple(place for place in places if begins_within(place, text, self._hints))
        # A place of both is one of a sign or a core too, wherever in it that begins.
        seen = [
            one for one in places if one not in hints or begins_within(one, text, self._prefilter)
        ]
        found = self._find_around(base64, seen, text, DEEPEST)
        return MatchResult(_first(found, text, most=most), hints)

    def _find(self, text: bytes, deeper: int) -> Iterator[Span]:
        base64 = [*find_each(_base64(), text)]
        yield from self._find_around(base64, [*find_each(self._prefilter, text)], text, deeper)

    def _may_be_in(self, text: bytes) -> bool:
        """Whether the prefilter matches anywhere."""
        expressions = (*_base64(), *self._prefilter)
        return any(expression.search(text) is not None for expression in expressions) or any(
            form in text for form in self._long
        )

    def _find_around(
        self, base64: Places, others: Places, text: bytes, deeper: int
    ) -> Iterator[Span]:
        """Find secrets around the places that the prefilter found."""
        for form in self._long:
            yield from _find_plain(text, form)
        for start, end in around(sorted(others), self._far, len(text)):
            yield from _move(start, self._match_text(text[start:end]))
        seen = sorted((*base64, *others))
        for start, end in around(seen, self._far, len(text)):
            yield from _move(start, self._match_whole(text[start:end]))
        for start, end in around(seen, self._reach, len(text)) if deeper else ():
            for window_start, window_end in self._windows(start, end):
                decoded = self._find_decoded(text[window_start:window_end], deeper)
                yield from _move(window_start, decoded)

    def _match_text(self, stretch: bytes) -> Iterator[Span]:
        """Match forms that are encoded character by character."""
        for group in self._groups:
            yield from group.find(stretch)

    def _match_whole(self, stretch: bytes) -> Iterator[Span]:
        """Match forms in which an encoding changes all of a secret."""
        for expression in self._whole:
            for start, end in find_overlapping(expression, stretch):
                yield Span(start, end, guess_kind(stretch[start:end]))

    def _find_decoded(self, window: bytes, deeper: int) -> Iterator[Span]:
        """Find secrets in the decoded views of a window."""
        read = [*decode_views(window)]
        # Nearly all of them are noise, which is looked through at once.
        if not self._may_be_in(b"".join(view.content for view in read)):
            return
        for view in read:
            for span in merge_spans(self._find(view.content, deeper - 1)):
                start, end = view.locate(span.start, span.end - 1)
                yield Span(start, end, span.kind if view.kind is Kind.TEXT else view.kind)

    def _windows(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Split a stretch into windows of bounded size that overlap by a secret's reach."""
        size = max(_WINDOW_BYTES, 4 * self._reach)
        while end - start > size:
            yield start, start + size
            start += size - 2 * self._reach
        yield start, end

    @cached_property
    def _prefilter(self) -> tuple[Pattern, ...]:
        """The prefilter for everything but base64."""
        return self._compile_prefilter()

    @cached_property
    def _hint_prefilter(self) -> tuple[Pattern, ...]:
        """The prefilter joined with the hint."""
        return self._compile_prefilter(self._hint)

    @cached_property
    def _hints(self) -> tuple[Pattern, ...]:
        return compile_forms([self._hint])

    def _compile_prefilter(self, *beside: str) -> tuple[Pattern, ...]:
        _, *others = sign_runs()
        cores = (*self._cores(text_cores), *self._cores(whole_cores))
        typed = (core for one in self._typed for core in (*one.text_cores(), *one.whole_cores()))
        return compile_forms([*others, GROWTH, *cores, *typed, *beside])

    @cached_property
    def _groups(self) -> tuple[_Group, ...]:
        starts = range(0, len(self._short), _GROUP_SECRETS)
        groups = (self._short[at : at + _GROUP_SECRETS] for at in starts)
        whole = (
            _Group(
                partial(_text_cores, one), partial(_text_forms, one), partial(_long_text_forms, one)
            )
            for one in groups
        )
        grown = (_Group(one.text_cores, tuple, one.text_forms) for one in self._typed)
        return (*whole, *grown)

    @cached_property
    def _whole(self) -> tuple[Pattern | SegmentedPattern, ...]:
        forms = compile_forms(self._whole_forms(), limit_chars=_WHOLE_FORMS_CHARS)
        return (*forms, *compile_segmented(self._long_whole_forms()))

    def _cores(self, of: Callable[[str], Iterator[str]]) -> list[str]:
        return [core for secret in self._short for core in of(secret)]

    def _whole_forms(self) -> list[str]:
        return [form for secret in self._short for form in whole_forms(secret)]

    def _long_whole_forms(self) -> list[Form]:
        grown = (form for one in self._typed for form in one.whole_forms())
        return [*(form for secret in self._short for form in long_whole_forms(secret)), *grown]


def _base64() -> tuple[Pattern, ...]:
    """The prefilter for base64."""
    return compile_once(sign_runs()[0])


def _text_cores(secrets: Iterable[str]) -> list[str]:
    return [core for secret in secrets for core in text_cores(secret)]


def _text_forms(secrets: Iterable[str]) -> list[str]:
    return [form for secret in secrets for form in text_forms(secret)]


def _long_text_forms(secrets: Iterable[str]) -> list[Form]:
    return [form for secret in secrets for form in long_text_forms(secret)]


def _first(found: Iterator[Span], text: bytes, *, most: int) -> list[Span] | None:
    """Merge at most that many spans. None: there are more."""
    first = list(islice(found, most + 1))
    return merge_spans(clip(text, span) for span in first) if len(first) <= most else None


def _reach_bytes(chars: int) -> int:
    """How many bytes a secret may extend beyond a sign of its encoding."""
    near = _REACH_BYTES_PER_CHAR * min(chars, _FURTHER_CHARS)
    further = _REACH_BYTES_PER_FURTHER_CHAR * max(0, chars - _FURTHER_CHARS)
    return _LEAST_REACH_BYTES + near + further


def _move(start: int, spans: Iterator[Span]) -> Iterator[Span]:
    for span in spans:
        yield span._replace(start=start + span.start, end=start + span.end)


def _find_plain(text: bytes, form: bytes) -> Iterator[Span]:
    start = text.find(form)
    while start != -1:
        yield Span(start, start + len(form), Kind.TEXT)
        start = text.find(form, start + len(form))
