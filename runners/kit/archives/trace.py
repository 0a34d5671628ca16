"""What the members of a trace tell about each other."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from runners.kit.archives.headers import HeaderHiding
from runners.kit.archives.resource_names import ResourceNames
from runners.kit.archives.search import Edit, Search
from runners.kit.archives.snapshots import Beginnings
from runners.kit.archives.spelling import Spelled, Spelling, hide_spelled
from runners.kit.archives.trace_pictures import TracePictures

_SPELLING: Final = (".trace", ".jsonl")
"""Members whose lines may spell something together."""


@dataclass(slots=True)
class _Events:
    """What one member of events was found to hold."""

    spelled: Spelled = field(default_factory=Spelled)
    loud: set[int] = field(default_factory=set)
    """Blocks with secrets in their usual forms, by their place."""
    hinted: set[int] = field(default_factory=set)
    """Blocks with a hint at anything else."""
    blocks: int = 0
    ends_line: bool = True
    """Whether the last block that was read ended with a line."""
    is_aligned: bool = True
    """Whether every block did, so that nothing lies across two."""

    @property
    def is_clean(self) -> bool:
        """Whether it can stay as it is, unless it tells of others that cannot."""
        return not (
            self.spelled.calls
            or self.spelled.lines
            or self.loud
            or self.hinted
            or not self.is_aligned
        )


class Trace:
    """Of one archive; one that is no trace has nothing of it but headers."""

    def __init__(self, header_names: Iterable[str]) -> None:
        self.headers = HeaderHiding(header_names)
        self.pictures = TracePictures()
        self._found = TracePictures()
        """What is told of header values alone."""
        self.names = ResourceNames()
        self._events: dict[str, _Events] = {}
        """By the member's name."""
        self._beginnings = Beginnings(())

    @property
    def shows_found(self) -> bool:
        """Whether a page showed a header's value."""
        return self._found.shows_secret

    def read(self, blocks: Iterable[bytes]) -> None:
        """Read a member of JSON for headers' values."""
        for block in blocks:
            self.headers.look(block)

    def read_events(self, name: str, blocks: Iterable[bytes], search: Search) -> None:
        """Read a member for what has to be known before any is written."""
        events = self._events[name] = _Events()
        spelling = Spelling(search.secrets if name.endswith(_SPELLING) else ())
        for block in blocks:
            spelling.read(block)
            self.pictures.look_for_attached(block)
            if self._look(name, block, events, search):
                self.headers.look(block)
        events.spelled = spelling.found
        self._note_typed()

    def read_again(self, name: str, blocks: Iterable[bytes], search: Search) -> None:
        """Read a member for values that were come upon meanwhile: a page may show them too."""
        events = self._events[name]
        if not name.endswith(".trace"):
            events.loud, events.hinted = set(range(events.blocks)), set(range(events.blocks))
            return
        events.blocks, events.ends_line = 0, True
        for block in blocks:
            self._look(name, block, events, search)
            if not self.shows_found and events.blocks - 1 in events.loud:
                self._found.look_for_pages(block, search.pattern)

    def needs_cleaning(self, name: str) -> bool:
        """Whether a member of events must change."""
        return bool(
            not self._events[name].is_clean or not self.names.is_empty or self.pictures.shows_secret
        )

    def cleaned(
        self, name: str, blocks: Iterable[bytes], search: Search, edits: tuple[Edit, ...]
    ) -> Iterator[tuple[bytes, int]]:
        """The blocks of a member of events without secrets, and how many there were."""
        events = self._events[name]
        for number, block in enumerate(blocks):
            clean, total = block, 0
            for edit in self.edits(name, edits if number in events.hinted else ()):
                clean, count = edit(clean)
                total += count
            if number in events.loud:
                clean, count = search.pattern.hide(clean)
                total += count
            yield clean, total

    def is_aligned(self, name: str) -> bool:
        """Whether a member of events can be cleaned block by block."""
        return self._events[name].is_aligned

    def _look(self, name: str, block: bytes, events: _Events, search: Search) -> bool:
        """Note what is in the next block; whether there is a hint at more than usual forms."""
        events.is_aligned = events.is_aligned and events.ends_line
        events.ends_line = block.endswith(b"\n")
        if search.pattern.may_be_in(block):
            events.loud.add(events.blocks)
            if name.endswith(".trace"):
                self.pictures.look_for_pages(block, search.pattern)
        is_hinted_at = search.is_hinted_at(block, is_json=True)
        if is_hinted_at:
            events.hinted.add(events.blocks)
        events.blocks += 1
        return is_hinted_at

    def _note_typed(self) -> None:
        typed = {secret for one in self._events.values() for secret in one.spelled.secrets}
        if typed:
            # No event tells which page the keys went to.
            self.pictures.is_everywhere()
            self._beginnings = Beginnings(typed)

    def edits(self, name: str, own: tuple[Edit, ...] = ()) -> tuple[Edit, ...]:
        """What is done to a member that tells of others, and when to do what else is done."""
        events = self._events.get(name, _Events())
        # Lines are known by what they were, and what is split is found while all of it is there.
        last = (self.pictures.without, self.names.update, self._beginnings.hide)
        return (partial(hide_spelled, spelled=events.spelled), *own, *last)
