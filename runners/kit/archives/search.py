"""What is looked for in a file, and what is done to each block of its text."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from runners.kit.archives import embedded, headers
from runners.kit.archives.blocks import in_blocks
from runners.kit.archives.expressions import compiled
from runners.kit.archives.numbers import Numbers
from runners.kit.archives.snapshots import HTML, SNAPSHOTS, SplitTexts
from runners.kit.secrets.covers import Cover
from runners.kit.secrets.job_secrets import usable, with_beginnings
from runners.kit.secrets.pattern import SecretPattern
from runners.kit.secrets.places import begins_in
from runners.kit.secrets.sensitive import HIDDEN, SENSITIVE_HEADERS
from runners.kit.secrets.stream import HidingStream

Edit = Callable[[bytes], tuple[bytes, int]]
"""From a block to the block without something, and how often it was there."""
_OVERLAP_BYTES: Final = 1 << 16
"""So much of a block is looked at again with the next one."""
HIDDEN_IN_NAME: Final = b"hidden"
"""In the place of a secret in the name of a file."""


class Seen(NamedTuple):
    """What one block of JSON was found to hold."""

    covers: list[Cover] | None
    """Where secrets stand. None: where is not known."""
    is_hinted_at: bool
    """Whether there is a hint at more than their usual forms."""


class Search:
    """Secrets, and what finds them in each of their shapes."""

    def __init__(
        self,
        secrets: tuple[str, ...],
        *,
        typed: tuple[str, ...] = (),
        out_of_sight: tuple[str, ...] = (),
        header_names: frozenset[str] = SENSITIVE_HEADERS,
    ) -> None:
        self.secrets = secrets
        self.typed = typed
        """Those that were typed letter by letter: pages may tell their beginnings."""
        self.out_of_sight = out_of_sight
        """Those that no script of the run was given."""
        self.header_names = header_names
        """Of headers whose values are secret whatever they are, in lower case."""
        self.numbers = Numbers(with_beginnings(secrets, typed))
        self.in_snapshots = SplitTexts(secrets, SNAPSHOTS)
        self.in_html = SplitTexts(secrets, HTML)
        self.pattern = SecretPattern(secrets, typed=typed, hint=self._hint_in_json)

    def seen_in(self, block: bytes) -> Seen:
        """What a block of JSON holds; one look for all, where there is little of it."""
        looked = self.pattern.look(block)
        if looked is None:
            is_hinted_at = self.is_hinted_at(block, is_json=True)
            return Seen(self.pattern.seen_in(block), is_hinted_at)
        is_meant = any(self._is_meant_at(place, block) for place in looked.hinted)
        return Seen(looked.covers, is_meant)

    def _is_meant_at(self, place: tuple[int, int], block: bytes) -> bool:
        """Whether a hint that begins there is at more than a split text by chance."""
        return begins_in(place, block, (self._elsewhere,)) or self.in_snapshots.may_begin_in(
            place, block
        )

    def is_hinted_at(self, block: bytes, *, is_json: bool) -> bool:
        """Whether anything but the secrets' usual forms may be in a block; one look for all."""
        hint = self._in_json if is_json else self._in_text
        if hint.search(block) is None:
            return False
        # What only hints at a split text does so by chance in every hundredth hash.
        return not is_json or self._may_be_split(block) or self._elsewhere.search(block) is not None

    def _may_be_split(self, block: bytes) -> bool:
        return next(self.in_snapshots.lines(block), None) is not None

    @cached_property
    def _in_json(self) -> Any:
        return compiled(self._hint_in_json)

    @cached_property
    def _hint_in_json(self) -> str:
        return "|".join(filter(None, (self.in_snapshots.hint, *self._hints)))

    @cached_property
    def _elsewhere(self) -> Any:
        return compiled("|".join(self._hints))

    @cached_property
    def _hints(self) -> tuple[str, ...]:
        """At what may be in any line of JSON."""
        hints = (self.numbers.hint, headers.hint(self.header_names), embedded.HINT)
        return tuple(filter(None, hints))

    @cached_property
    def _in_text(self) -> Any:
        return compiled("|".join(filter(None, (self.in_html.hint, embedded.HINT))))

    def let_go_of_pages(self) -> bool:
        """Let go of what other texts than JSON take, until there is another. Whether it was any."""
        self.in_html.let_go()
        return self.__dict__.pop("_in_text", None) is not None

    def joined(self, found: Iterable[str]) -> "Search":
        """With what was come upon."""
        secrets = usable((*self.secrets, *found))
        return self if set(secrets) <= set(self.secrets) else self.with_secrets(secrets)

    def with_secrets(self, secrets: tuple[str, ...]) -> "Search":
        """The same for others."""
        return Search(
            secrets,
            typed=self.typed,
            out_of_sight=self.out_of_sight,
            header_names=self.header_names,
        )

    def hide_in_name(self, name: bytes) -> tuple[bytes, int]:
        """For names of files, which an asterisk would spoil."""
        hidden, count = self.pattern.hide(name)
        return hidden.replace(HIDDEN.encode(), HIDDEN_IN_NAME) if count else name, count


@dataclass(slots=True)
class Text:
    """A text on its way through edits and the search."""

    search: Search
    edits: tuple[Edit, ...] = ()
    """Where the block hints at what they are for."""
    always: tuple[Edit, ...] = field(default=(), kw_only=True)
    """Of every block, before the others."""
    is_json: bool = field(default=False, kw_only=True)
    replacements: int = field(default=0, init=False)

    def cleaned(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The text without secrets."""
        stream = HidingStream(self.search.pattern)
        for block in in_blocks(pieces):
            edited, count = self._edited(block)
            self.replacements += count
            yield stream.feed(edited)
        yield stream.finish()
        self.replacements += stream.replacements

    def needs_cleaning(self, pieces: Iterable[bytes]) -> bool:
        """Whether there is anything to hide; it reads no further than the first of it."""
        end = b""
        for block in in_blocks(pieces):
            if self._edited(block)[1]:
                return True
            if self.search.pattern.may_be_in(end + block):
                return True
            end = block[-_OVERLAP_BYTES:]
        return False

    def _edited(self, block: bytes) -> tuple[bytes, int]:
        total, edits = 0, self.always
        if self.edits and self.search.is_hinted_at(block, is_json=self.is_json):
            edits = (*edits, *self.edits)
        for edit in edits:
            block, count = edit(block)
            total += count
        return block, total
