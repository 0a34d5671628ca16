"""Replaces secrets in texts and in streams of bytes."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from redaction.decoders import Kind
from redaction.forms import MIXED_LIMIT_CHARS, usual_forms
from redaction.matcher import Looked, Search, Span, merge_spans, replacement
from redaction.policy import HIDDEN, SHORTEST_CHARS

BLOCK_BYTES: Final = 1 << 20
"""How much is looked through at a time."""
OVERLAP_BYTES: Final = 1 << 16
"""What is looked at beyond a block's end; longer occurrences are not found over it."""
SHOWN: Final = HIDDEN.encode()

_MOST_SEEN: Final = 64
"""So many places are remembered of a text; where there are more, it is searched again."""
_ROUNDS: Final = 4
"""A replacement beside what is left may spell a secret again (`abc` + `*` for `abc*`)."""


class Hidden(NamedTuple):
    """A block without secrets."""

    text: bytes
    replacements: int
    carried: int
    """How many bytes behind the block were replaced together with its end."""


class SecretPattern:
    """Finds secrets in every form, and the beginnings of secrets where a text was cut."""

    def __init__(
        self, secrets: Iterable[str], *, typed: Iterable[str] = (), hint: str = ""
    ) -> None:
        """`typed`: those that were typed letter by letter, so that their beginnings are secret.

        `hint`: an expression for what else may be looked for at once.
        """
        secrets = tuple(secrets)
        longest = max(map(len, secrets), default=0)
        self._chars = frozenset("".join(secrets).encode("utf-8", "surrogatepass"))
        self._usual = tuple(form for secret in secrets for form in usual_forms(secret))
        self._search = Search(secrets, typed=typed, hint=hint)
        self._is_long = longest > MIXED_LIMIT_CHARS
        self.overlap_bytes = max(OVERLAP_BYTES, 4 * longest)

    @property
    def size_chars(self) -> int:
        """Of all that is looked for, to tell large sets of secrets from small ones."""
        return self._search.size_chars + sum(map(len, self._usual))

    def may_be_in(self, encoded: bytes) -> bool:
        """Whether any of the texts that were encoded as JSON can hold a secret."""
        # Forms that are looked for as a whole change when they are encoded once more.
        return self._is_long or self._search.may_find(encoded)

    def seen_in(self, encoded: bytes) -> list[Span] | None:
        """Where texts that were encoded as JSON hold secrets; None: where is not known."""
        return None if self._is_long else self._search.first_covers(encoded, most=_MOST_SEEN)

    def look(self, encoded: bytes) -> Looked | None:
        """The same, and whether the hint is there; None: one look does not tell."""
        return None if self._is_long else self._search.look(encoded, most=_MOST_SEEN)

    def let_go(self) -> None:
        """Give back memory until it is used again."""
        self._search.let_go()

    def let_go_beside(self) -> None:
        """The same of what `look` alone takes."""
        self._search.let_go_beside()

    def hide_in_text(self, text: str) -> tuple[str, int]:
        """The same for people, who are shown the same in the place of every form."""
        encoded = text.encode("utf-8", "surrogatepass")
        hidden = self._hidden(encoded, limit=len(encoded), carried=0, shown=None)
        if not hidden.replacements:
            return text, 0
        return hidden.text.decode("utf-8", "replace"), hidden.replacements

    def hide(self, text: bytes, *, shown: bytes = SHOWN) -> tuple[bytes, int]:
        """The text without secrets, and in how many places there were some."""
        clean, total, carried, at = [], 0, 0, 0
        while len(text) - at >= BLOCK_BYTES + self.overlap_bytes:
            block = text[at : at + BLOCK_BYTES + self.overlap_bytes]
            hidden = self.hide_block(block, limit=BLOCK_BYTES, carried=carried, shown=shown)
            clean.append(hidden.text)
            total, carried, at = total + hidden.replacements, hidden.carried, at + BLOCK_BYTES
        last = self.hide_block(text[at:], limit=len(text) - at, carried=carried, shown=shown)
        return b"".join((*clean, last.text)), total + last.replacements

    def hide_seen(self, text: bytes, covers: list[Span]) -> tuple[bytes, int]:
        """The text without what was seen in it."""
        hidden = _without(text, covers, limit=len(text), carried=0, shown=SHOWN)
        hidden = self._again(hidden, SHOWN)
        return hidden.text, hidden.replacements

    def hide_block(
        self, text: bytes, *, limit: int, carried: int = 0, shown: bytes = SHOWN
    ) -> Hidden:
        """The text up to the limit; what stands behind it is only looked at.

        `carried`: how many bytes at its beginning were replaced with the block before.
        """
        return self._hidden(text, limit=limit, carried=carried, shown=shown)

    def _hidden(self, text: bytes, *, limit: int, carried: int, shown: bytes | None) -> Hidden:
        """`shown` is None when nobody will decode the text."""
        covers = self._search.covers(text)
        if not covers and not carried:
            return Hidden(text[:limit], 0, 0)
        covers = merge_spans((Span(0, carried, Kind.TEXT), *covers)) if carried else covers
        return self._again(_without(text, covers, limit=limit, carried=carried, shown=shown), shown)

    def _again(self, hidden: Hidden, shown: bytes | None) -> Hidden:
        """What is hidden, where what is shown in its place may be of a secret itself."""
        if self._chars.isdisjoint(shown or SHOWN):
            return hidden
        for _ in range(_ROUNDS):
            covers = self._search.covers(hidden.text)
            again = _without(hidden.text, covers, limit=len(hidden.text), carried=0, shown=shown)
            replacements = hidden.replacements + again.replacements
            hidden = Hidden(again.text, replacements, hidden.carried)
        return hidden

    def without_beginning(self, text: str) -> str:
        """The text without the piece of a secret that it ends in the middle of."""
        for form in self._usual:
            for size in range(min(len(form) - 1, len(text)), SHORTEST_CHARS - 1, -1):
                if text.endswith(form[:size]):
                    return text[:-size] + HIDDEN
        return text


def _without(
    text: bytes, covers: list[Span], *, limit: int, carried: int, shown: bytes | None
) -> Hidden:
    """The text up to the limit with something shown in place of the covers that begin there."""
    clean, count, at = [], 0, carried
    for cover in covers:
        if cover.start >= limit:
            break
        if cover.start >= carried:
            clean.append(text[at : cover.start])
            clean.append(_instead(text, cover, shown=shown))
            count += 1
        at = cover.end
    clean.append(text[at:limit])
    return Hidden(b"".join(clean), count, max(0, at - limit))


def _instead(text: bytes, cover: Span, *, shown: bytes | None) -> bytes:
    if shown is None:
        return SHOWN
    return replacement(text[cover.start : cover.end], cover.kind, shown=shown)


class HidingStream:
    """Passes bytes on without secrets; the cuts between chunks change nothing of the result."""

    def __init__(self, pattern: SecretPattern, *, shown: bytes = SHOWN) -> None:
        self._pattern = pattern
        self._shown = shown
        self._held = bytearray()
        self._carried = 0
        self.replacements = 0

    def feed(self, chunk: bytes) -> bytes:
        """What is clean by now; often nothing."""
        self._held += chunk
        clean = []
        while len(self._held) >= BLOCK_BYTES + self._pattern.overlap_bytes:
            block = bytes(self._held[: BLOCK_BYTES + self._pattern.overlap_bytes])
            clean.append(self._clean(block, limit=BLOCK_BYTES))
            del self._held[:BLOCK_BYTES]
        return b"".join(clean)

    def finish(self) -> bytes:
        """The rest; nothing may be fed afterwards."""
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
