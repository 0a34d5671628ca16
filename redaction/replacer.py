"""Replaces secrets in texts and in streams of bytes."""

from collections.abc import Iterable
from functools import cached_property
from typing import Final, NamedTuple

from redaction.decoders import Kind
from redaction.forms import MIXED_LIMIT_CHARS, cut_forms
from redaction.matcher import MatchResult, SecretMatcher, Span, make_replacement, merge_spans
from redaction.policy import HIDDEN

BLOCK_BYTES: Final = 1 << 20
"""How many bytes are searched at a time."""
OVERLAP_BYTES: Final = 1 << 16
"""How many bytes beyond a block's end are searched; longer matches across it are missed."""
SHOWN: Final = HIDDEN.encode()

_MOST_SEEN: Final = 64
"""How many places in a text are remembered; with more, it is searched again."""
_ROUNDS: Final = 4
"""How often a result is searched again: a replacement may complete a secret (`abc*`)."""


class Hidden(NamedTuple):
    """A block whose secrets are hidden."""

    text: bytes
    replacements: int
    carried: int
    """How many bytes after the block were replaced together with its end."""


class SecretPattern:
    """Finds and hides secrets in every form, and secrets cut off at a text's end."""

    def __init__(
        self, secrets: Iterable[str], *, typed: Iterable[str] = (), hint: str = ""
    ) -> None:
        """`typed`: those that were typed letter by letter, whose prefixes are secret too.

        `hint`: a further expression to search for in the same pass.
        """
        secrets = tuple(secrets)
        longest = max(map(len, secrets), default=0)
        self._chars = frozenset("".join(secrets).encode("utf-8", "surrogatepass"))
        self._secrets = secrets
        self._has_lines = any("\n" in secret for secret in secrets)
        self._matcher = SecretMatcher(secrets, typed=typed, hint=hint)
        self._is_long = longest > MIXED_LIMIT_CHARS
        self.overlap_bytes = max(OVERLAP_BYTES, 4 * longest)

    @property
    def size_chars(self) -> int:
        """The size of all expressions, a measure of their memory."""
        return self._matcher.size_chars + sum(map(len, self._secrets))

    def may_be_in(self, encoded: bytes) -> bool:
        """Whether a text encoded as JSON may have a secret."""
        # Forms that are looked for as a whole change when they are encoded once more.
        return self._is_long or self._matcher.may_match(encoded)

    def find(self, encoded: bytes) -> list[Span] | None:
        """Find secrets in a text encoded as JSON. None: there are too many places."""
        return None if self._is_long else self._matcher.find_few(encoded, most=_MOST_SEEN)

    def find_with_hint(self, encoded: bytes) -> MatchResult | None:
        """Find secrets and the hint in one pass. None: there are too many places."""
        return None if self._is_long else self._matcher.find_with_hint(encoded, most=_MOST_SEEN)

    def free(self) -> None:
        """Free the compiled expressions until they are used again."""
        self._matcher.free()

    def free_hint(self) -> None:
        """Free the memory that `find_with_hint` alone uses."""
        self._matcher.free_hint()

    def hide_in_text(self, text: str) -> tuple[str, int]:
        """Hide secrets in a text for people: every form has the same replacement."""
        encoded = text.encode("utf-8", "surrogatepass")
        hidden = self._hide(encoded, limit=len(encoded), carried=0, shown=None)
        if not hidden.replacements:
            return text, 0
        return hidden.text.decode("utf-8", "replace"), hidden.replacements

    def hide(self, text: bytes, *, shown: bytes = SHOWN) -> tuple[bytes, int]:
        """Hide secrets; the text and how many there were."""
        clean, total, carried, at = [], 0, 0, 0
        while len(text) - at >= BLOCK_BYTES + self.overlap_bytes:
            block = text[at : at + BLOCK_BYTES + self.overlap_bytes]
            hidden = self.hide_block(block, limit=BLOCK_BYTES, carried=carried, shown=shown)
            clean.append(hidden.text)
            total, carried, at = total + hidden.replacements, hidden.carried, at + BLOCK_BYTES
        last = self.hide_block(text[at:], limit=len(text) - at, carried=carried, shown=shown)
        return b"".join((*clean, last.text)), total + last.replacements

    def hide_in_lines(self, lines: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
        """Hide secrets of several lines that lie across these lines of one printed text."""
        if not self._has_lines:
            return lines, 0
        encoded = [line.encode("utf-8", "surrogatepass") for line in lines]
        spans = self._matcher.find(b"\n".join(encoded))
        start, count = 0, 0
        clean = []
        for given, line in zip(lines, encoded, strict=True):
            end = start + len(line)
            across = [one for one in spans if one.start < end and one.end > start]
            across = [one for one in across if one.start < start or one.end > end]
            inner = [
                Span(max(one.start, start) - start, min(one.end, end) - start, Kind.TEXT)
                for one in across
            ]
            hidden = _replace(line, inner, limit=len(line), carried=0, shown=None)
            clean.append(hidden.text.decode("utf-8", "replace") if inner else given)
            start, count = end + 1, count + hidden.replacements
        return (tuple(clean), count) if count else (lines, 0)

    def hide_spans(self, text: bytes, spans: list[Span]) -> tuple[bytes, int]:
        """Hide the secrets that were found at these spans."""
        hidden = _replace(text, spans, limit=len(text), carried=0, shown=SHOWN)
        hidden = self._hide_again(hidden, SHOWN)
        return hidden.text, hidden.replacements

    def hide_block(
        self, text: bytes, *, limit: int, carried: int = 0, shown: bytes = SHOWN
    ) -> Hidden:
        """Hide secrets in the text up to the limit; what follows is only searched.

        `carried`: how many bytes at its start were replaced with the block before.
        """
        return self._hide(text, limit=limit, carried=carried, shown=shown)

    def _hide(self, text: bytes, *, limit: int, carried: int, shown: bytes | None) -> Hidden:
        """`shown` is None for a text that nobody will decode."""
        spans = self._matcher.find(text)
        if not spans and not carried:
            return Hidden(text[:limit], 0, 0)
        spans = merge_spans((Span(0, carried, Kind.TEXT), *spans)) if carried else spans
        return self._hide_again(
            _replace(text, spans, limit=limit, carried=carried, shown=shown), shown
        )

    def _hide_again(self, hidden: Hidden, shown: bytes | None) -> Hidden:
        """Search again where a replacement may complete a secret."""
        if self._chars.isdisjoint(shown or SHOWN):
            return hidden
        for _ in range(_ROUNDS):
            spans = self._matcher.find(hidden.text)
            repeated = _replace(hidden.text, spans, limit=len(hidden.text), carried=0, shown=shown)
            replacements = hidden.replacements + repeated.replacements
            hidden = Hidden(repeated.text, replacements, hidden.carried)
        return hidden

    def hide_cut_secret(self, text: str) -> str:
        """Hide the prefix of a secret that the text was cut in."""
        starts = (_find_cut(text, *form) for form in self._cut_forms)
        start = min((start for start in starts if start >= 0), default=-1)
        return text if start < 0 else text[:start] + HIDDEN

    @cached_property
    def _cut_forms(self) -> tuple[tuple[str, int], ...]:
        return tuple(form for secret in self._secrets for form in cut_forms(secret))


def _find_cut(text: str, form: str, least: int) -> int:
    """Where the text ends with a beginning of the form. -1: it does not."""
    start = text.find(form[:least], max(0, len(text) - len(form)))
    while start >= 0 and not form.startswith(text[start:]):
        start = text.find(form[:least], start + 1)
    return start


def _replace(
    text: bytes, spans: list[Span], *, limit: int, carried: int, shown: bytes | None
) -> Hidden:
    """Replace the spans that begin before the limit."""
    clean, count, at = [], 0, carried
    for span in spans:
        if span.start >= limit:
            break
        if span.start >= carried:
            clean.append(text[at : span.start])
            clean.append(_replacement_of(text, span, shown=shown))
            count += 1
        at = span.end
    clean.append(text[at:limit])
    return Hidden(b"".join(clean), count, max(0, at - limit))


def _replacement_of(text: bytes, span: Span, *, shown: bytes | None) -> bytes:
    if shown is None:
        return SHOWN
    return make_replacement(text[span.start : span.end], span.kind, shown=shown)


class RedactingStream:
    """Hides secrets in a stream; the chunks' borders make no difference."""

    def __init__(self, pattern: SecretPattern, *, shown: bytes = SHOWN) -> None:
        self._pattern = pattern
        self._shown = shown
        self._held = bytearray()
        self._carried = 0
        self.replacements = 0

    def feed(self, chunk: bytes) -> bytes:
        """Take a chunk and return what is clean so far, often nothing."""
        self._held += chunk
        clean = []
        while len(self._held) >= BLOCK_BYTES + self._pattern.overlap_bytes:
            block = bytes(self._held[: BLOCK_BYTES + self._pattern.overlap_bytes])
            clean.append(self._clean(block, limit=BLOCK_BYTES))
            del self._held[:BLOCK_BYTES]
        return b"".join(clean)

    def finish(self) -> bytes:
        """Return the rest; call it last."""
        rest = self._clean(bytes(self._held), limit=len(self._held))
        self._held.clear()
        return rest

    def _clean(self, block: bytes, *, limit: int) -> bytes:
        hidden = self._pattern.hide_block(
            block, limit=limit, carried=self._carried, shown=self._shown
        )
        self._carried = hidden.carried
        self.replacements += hidden.replacements
        return hidden.text
