"""What the members of a trace tell about each other."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final

from runners.kit.archives.ahead import each_with
from runners.kit.archives.headers import HeaderHiding
from runners.kit.archives.resource_names import ResourceNames
from runners.kit.archives.search import Edit, Search, Seen
from runners.kit.archives.snapshots import Beginnings
from runners.kit.archives.spelling import Spelled, Spelling, Words, hide_spelled
from runners.kit.archives.trace_pictures import TracePictures, lines_with
from runners.kit.archives.valid_lines import with_valid_lines
from runners.kit.secrets.covers import Cover
from runners.kit.secrets.job_secrets import beginnings_of

PAGES: Final = ".trace"
"""How members end that tell of pages."""
_SPELLING: Final = (PAGES, ".jsonl")
"""Members whose lines may spell something together."""


@dataclass(slots=True)
class _Events:
    """What one member of events was found to hold."""

    spelled: Spelled = field(default_factory=Spelled)
    seen: dict[int, list[Cover] | None] = field(default_factory=dict)
    """By the place of a block where secrets stand in it. None: where is not known."""
    hinted: set[int] = field(default_factory=set)
    """Blocks with a hint at anything else."""
    is_unseen: bool = True
    """Whether it was not looked through, so that secrets may be everywhere."""
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
            or self.seen
            or self.hinted
            or self.is_unseen
            or not self.is_aligned
        )

    def note(self, block: bytes) -> int:
        """Go on to the next block; its place."""
        self.is_aligned = self.is_aligned and self.ends_line
        self.ends_line = block.endswith(b"\n")
        self.blocks += 1
        return self.blocks - 1

    def look_again(self) -> None:
        """Forget all but what is spelled, to be looked through from the beginning."""
        self.blocks, self.ends_line, self.is_unseen = 0, True, False
        self.seen.clear()


class Trace:
    """Of one archive; one that is no trace has nothing of it but headers."""

    def __init__(
        self, header_names: Iterable[str], secrets: tuple[str, ...], *, typed: tuple[str, ...] = ()
    ) -> None:
        self.headers = HeaderHiding(header_names)
        self.pictures = TracePictures()
        self._found = TracePictures()
        """What is told of header values, and of secrets that no script was given, alone."""
        self._found_search: Search | None = None
        """Finds these values. None: there are none yet."""
        self.names = ResourceNames()
        self._secrets, self._typed = secrets, frozenset(typed)
        self._events: dict[str, _Events] = {}
        """By the member's name."""
        self._grown: frozenset[str] = frozenset()
        """Secrets that were typed, by who told it or by an event."""
        self._beginnings = Beginnings(())
        self._note_typed(Spelled())

    @property
    def shows_found(self) -> bool:
        """Whether a page showed what no mask knew, as a header's value."""
        return self._found.shows_secret

    def know_found(self, search: Search, joined: Search) -> None:
        """What was come upon, beyond what was looked for; no mask knew it."""
        further = (*search.out_of_sight, *(set(joined.secrets) - set(search.secrets)))
        self._found_search = search.with_secrets(further) if further else None

    def read(self, blocks: Iterable[bytes]) -> None:
        """Read a member of JSON for headers' values."""
        for block in blocks:
            self.headers.look(block)

    def read_log(self, name: str, blocks: Iterable[bytes]) -> None:
        """Read a member of events that are full of headers, before it is known what to look for."""
        events = self._events[name] = _Events()
        spelling = Spelling(self._words if name.endswith(_SPELLING) else Words(()))
        for block in blocks:
            events.note(block)
            spelling.read(block)
            self.pictures.look_for_attached(block)
            self.headers.look(block)
        events.spelled = spelling.found
        self._note_typed(spelling.found)

    def read_events(self, name: str, blocks: Iterable[bytes], search: Search) -> None:
        """Read a member for what has to be known before any is written."""
        events = self._events[name] = _Events(is_unseen=False)
        spelling = Spelling(self._words)
        for block, seen in each_with(search.seen_in, blocks):
            spelling.read(block)
            self.pictures.look_for_attached(block)
            self._note(block, seen, events, search)
            if seen.is_hinted_at:
                self.headers.look(block)
        events.spelled = spelling.found
        self._note_typed(spelling.found)

    def read_again(self, name: str, blocks: Iterable[bytes], search: Search) -> None:
        """Look through a member that was read before."""
        events = self._events[name]
        events.look_again()
        for block, seen in each_with(search.seen_in, blocks):
            self._note(block, seen, events, search, shows_pages=name.endswith(PAGES))

    def needs_cleaning(self, name: str) -> bool:
        """Whether a member of events must change."""
        return bool(
            not self._events[name].is_clean or not self.names.is_empty or self.pictures.shows_secret
        )

    def cleaned(
        self, name: str, blocks: Iterable[bytes], search: Search, edits: tuple[Edit, ...]
    ) -> Iterator[tuple[bytes, int]]:
        """The blocks of a member of events without secrets, and how many there were."""
        work = partial(self._cleaned, name=name, search=search, edits=edits)
        for _, clean in each_with(work, enumerate(blocks)):
            yield clean

    def _cleaned(
        self, numbered: tuple[int, bytes], *, name: str, search: Search, edits: tuple[Edit, ...]
    ) -> tuple[bytes, int]:
        (number, block), events = numbered, self._events[name]
        is_hinted_at = events.is_unseen or number in events.hinted
        clean, total = block, 0
        for edit in self.edits(name, edits if is_hinted_at else ()):
            clean, count = edit(clean)
            total += count
        hidden, count = _hidden(clean, number, events, search, is_changed=clean is not block)
        return with_valid_lines(block, hidden), total + count

    def is_aligned(self, name: str) -> bool:
        """Whether a member of events can be cleaned block by block."""
        return self._events[name].is_aligned

    def _note(
        self,
        block: bytes,
        seen: Seen,
        events: _Events,
        search: Search,
        *,
        shows_pages: bool = True,
    ) -> None:
        """Remember what is in the next block."""
        number = events.note(block)
        if seen.covers is None or seen.covers:
            events.seen[number] = seen.covers
            if shows_pages:
                self._look_for_pages(block, seen.covers, search)
        if seen.is_hinted_at:
            events.hinted.add(number)
            if shows_pages:
                self._look_for_split(block, search)

    def _look_for_pages(self, block: bytes, covers: list[Cover] | None, search: Search) -> None:
        lines = block.split(b"\n") if covers is None else list(lines_with(covers, block))
        self.pictures.look_for_pages(lines, None if covers else search.pattern)
        if self._found_search is not None and not self.shows_found:
            self._found.look_for_pages(lines, self._found_search.pattern)

    def _look_for_split(self, block: bytes, search: Search) -> None:
        """A page shows as one what is split over its elements."""
        self.pictures.look_for_pages(search.in_snapshots.lines_with(block), None)
        if self._found_search is not None and not self.shows_found:
            split = self._found_search.in_snapshots
            self._found.look_for_pages(split.lines_with(block), None)

    @cached_property
    def _words(self) -> Words:
        begun = (one for secret in self._typed for one in beginnings_of(secret))
        return Words((*self._secrets, *begun))

    def _note_typed(self, spelled: Spelled) -> None:
        grown = self._grown | self._typed | spelled.secrets
        if grown != self._grown:
            self._grown, self._beginnings = grown, Beginnings(grown)
        if grown or spelled.boxes:
            # No event tells which page the keys went to.
            self.pictures.is_everywhere()

    def edits(self, name: str, own: tuple[Edit, ...] = ()) -> tuple[Edit, ...]:
        """What is done to a member that tells of others, and when to do what else is done."""
        events = self._events.get(name, _Events())
        # Lines are known by what they were, and what is split is found while all of it is there.
        last = (self.pictures.without, self.names.update, self._beginnings.hide)
        return (partial(hide_spelled, spelled=events.spelled), *own, *last)


def _hidden(
    block: bytes, number: int, events: _Events, search: Search, *, is_changed: bool
) -> tuple[bytes, int]:
    if events.is_unseen:
        return search.pattern.hide(block)
    if number not in events.seen:
        return block, 0
    covers = events.seen[number]
    if covers is None or is_changed:
        return search.pattern.hide(block)
    return search.pattern.hide_seen(block, covers)
