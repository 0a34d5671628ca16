"""Hides secrets in the events, resources and pictures of a trace."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import Final

from redaction.archives.headers import HeaderRedactor
from redaction.archives.json_lines import with_valid_lines
from redaction.archives.limits import map_ahead
from redaction.archives.search import BlockMatches, Edit, Search
from redaction.compiled import Pattern, compile_re2
from redaction.matcher import Span
from redaction.policy import hidden_prefixes
from redaction.trace.pictures import TracePictures, lines_with
from redaction.trace.snapshots import TypedPrefixes
from redaction.trace.typed import TypedSecrets, TypedTextReader, TypedWords, hide_typed

PAGES: Final = ".trace"
"""The suffix of members with events of pages."""
_SPELLING: Final = (PAGES, ".jsonl")
"""Suffixes of members whose lines may together spell a secret."""


@dataclass(slots=True)
class _Events:
    """What was found in one event file."""

    typed_secrets: TypedSecrets = field(default_factory=TypedSecrets)
    matches: dict[int, list[Span] | None] = field(default_factory=dict)
    """Where secrets are in each block, by its number. None: unknown."""
    hints: set[int] = field(default_factory=set)
    """Numbers of the blocks that the prefilter for other forms matched."""
    is_unseen: bool = True
    """Whether it was not searched yet, so secrets may be anywhere."""
    blocks: int = 0
    ends_line: bool = True
    """Whether the last block that was read ended with a line."""
    is_aligned: bool = True
    """Whether every block did, so that nothing spans two blocks."""

    @property
    def is_clean(self) -> bool:
        """Whether it can be copied, unless it names members that change."""
        return not (
            self.typed_secrets.calls
            or self.typed_secrets.lines
            or self.matches
            or self.hints
            or self.is_unseen
            or not self.is_aligned
        )

    def note(self, block: bytes) -> int:
        """Register the next block and return its number."""
        self.is_aligned = self.is_aligned and self.ends_line
        self.ends_line = block.endswith(b"\n")
        self.blocks += 1
        return self.blocks - 1

    def reset(self) -> None:
        """Reset all but the typed texts, before it is searched again."""
        self.blocks, self.ends_line, self.is_unseen = 0, True, False
        self.matches.clear()


class Trace:
    """What is known of one archive's event files; other archives only have header values."""

    def __init__(
        self,
        header_names: Iterable[str],
        secrets: tuple[str, ...],
        *,
        typed: tuple[str, ...] = (),
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`names`: what people call the secrets that have a name, by value."""
        self._names_of_secrets = names
        self.headers = HeaderRedactor(header_names)
        self.pictures = TracePictures()
        self._found = TracePictures()
        """Pages that showed header values, or secrets that no script was given."""
        self._found_search: Search | None = None
        """Searches for these values. None: there are none yet."""
        self.names = ResourceNames()
        self._secrets, self._typed = secrets, frozenset(typed)
        self._events: dict[str, _Events] = {}
        """What was found in each event file, by its name."""
        self._grown: frozenset[str] = frozenset()
        """Secrets that were typed, as reported by the run or by an event."""
        self._prefix_forms = TypedPrefixes(())
        self._note_typed(TypedSecrets())

    @property
    def shows_found(self) -> bool:
        """Whether a page showed a secret that no mask knew, such as a header's value."""
        return self._found.shows_secret

    def set_found(self, search: Search, joined: Search) -> None:
        """Set the secrets that were found in the archive, which no mask knew."""
        further = (*search.out_of_sight, *(set(joined.secrets) - set(search.secrets)))
        self._found_search = search.with_secrets(further) if further else None

    def read(self, blocks: Iterable[bytes]) -> None:
        """Read header values from a JSON member."""
        for block in blocks:
            self.headers.collect(block)

    def read_log(self, name: str, blocks: Iterable[bytes]) -> None:
        """Read an event file full of headers, before the secrets are all known."""
        events = self._events[name] = _Events()
        reader = TypedTextReader(self._typed_words if name.endswith(_SPELLING) else TypedWords(()))
        for block in blocks:
            events.note(block)
            reader.read(block)
            self.pictures.collect(block)
            self.headers.collect(block)
        events.typed_secrets = reader.found
        self._note_typed(reader.found)

    def read_events(self, name: str, blocks: Iterable[bytes], search: Search) -> None:
        """Read an event file for what must be known before any member is written."""
        events = self._events[name] = _Events(is_unseen=False)
        reader = TypedTextReader(self._typed_words)
        for block, matches in map_ahead(search.find_in_block, blocks):
            reader.read(block)
            self.pictures.collect(block)
            self._record(block, matches, events, search)
            if matches.has_hint:
                self.headers.collect(block)
        events.typed_secrets = reader.found
        self._note_typed(reader.found)
        self._mark_all_if_cut(events)

    def read_again(self, name: str, blocks: Iterable[bytes], search: Search) -> None:
        """Search an event file again, for more secrets."""
        events = self._events[name]
        events.reset()
        for block, matches in map_ahead(search.find_in_block, blocks):
            self._record(block, matches, events, search, shows_pages=name.endswith(PAGES))
        if name.endswith(PAGES):
            self._mark_all_if_cut(events)

    def needs_cleaning(self, name: str) -> bool:
        """Whether an event file must be rewritten."""
        return bool(
            not self._events[name].is_clean or not self.names.is_empty or self.pictures.shows_secret
        )

    def clean_blocks(
        self, name: str, blocks: Iterable[bytes], search: Search, edits: tuple[Edit, ...]
    ) -> Iterator[tuple[bytes, int]]:
        """Yield the blocks of an event file without secrets, and how many each had."""
        work = partial(self._clean_block, name=name, search=search, edits=edits)
        for _, clean in map_ahead(work, enumerate(blocks)):
            yield clean

    def _clean_block(
        self, numbered: tuple[int, bytes], *, name: str, search: Search, edits: tuple[Edit, ...]
    ) -> tuple[bytes, int]:
        (number, block), events = numbered, self._events[name]
        has_hint = events.is_unseen or number in events.hints
        clean, total = block, 0
        for edit in self.edits(name, edits if has_hint else ()):
            clean, count = edit(clean)
            total += count
        hidden, count = _hide(clean, number, events, search, is_changed=clean is not block)
        return with_valid_lines(block, hidden), total + count

    def is_aligned(self, name: str) -> bool:
        """Whether an event file can be cleaned block by block."""
        return self._events[name].is_aligned

    def _record(
        self,
        block: bytes,
        matches: BlockMatches,
        events: _Events,
        search: Search,
        *,
        shows_pages: bool = True,
    ) -> None:
        """Record what the search found in the next block."""
        number = events.note(block)
        if matches.spans is None or matches.spans:
            events.matches[number] = matches.spans
            if shows_pages:
                self._mark_pages(block, matches.spans, search)
        if matches.has_hint:
            events.hints.add(number)
            if shows_pages:
                self._mark_split_pages(block, search)

    def _mark_all_if_cut(self, events: _Events) -> None:
        """Mark every page if an event is longer than a block: it was not read as a whole."""
        if not events.is_aligned and self._secrets:
            self.pictures.mark_all("what an event says that is too long to be read as a whole")
        if not events.is_aligned and self._found_search is not None:
            self._found.mark_all()

    def _mark_pages(self, block: bytes, spans: list[Span] | None, search: Search) -> None:
        lines = block.split(b"\n") if spans is None else list(lines_with(spans, block))
        finder = partial(_has_secret, search=search)
        self.pictures.mark_pages(
            lines, has_secret=finder, is_sure=bool(spans), name=self._name_secret
        )
        if self._found_search is not None and not self.shows_found:
            finder = partial(_has_secret, search=self._found_search)
            self._found.mark_pages(lines, has_secret=finder, is_sure=False)

    def _mark_split_pages(self, block: bytes, search: Search) -> None:
        """Record pages that show a split secret, which looks whole on the page."""
        lines = search.in_snapshots.lines_with(block)
        finder = partial(_has_split_secret, search=search)
        self.pictures.mark_pages(lines, has_secret=finder, is_sure=True, name=self._name_secret)
        if self._found_search is not None and not self.shows_found:
            lines = self._found_search.in_snapshots.lines_with(block)
            finder = partial(_has_split_secret, search=self._found_search)
            self._found.mark_pages(lines, has_secret=finder, is_sure=True)

    def _name_secret(self, event: bytes) -> str:
        """Name the secret in an event by its variable or header. Empty: not as it is."""
        for value, name in self._names_of_secrets.items():
            if _is_in(event, value):
                return name
        for value, header in self.headers.names.items():
            if _is_in(event, value):
                return f"a value of the header {header.title()}"
        return ""

    @cached_property
    def _typed_words(self) -> TypedWords:
        limit_backslashes = (one for secret in self._typed for one in hidden_prefixes(secret))
        return TypedWords((*self._secrets, *limit_backslashes))

    def _note_typed(self, typed_secrets: TypedSecrets) -> None:
        grown = self._grown | self._typed | typed_secrets.secrets
        if grown != self._grown:
            self._grown, self._prefix_forms = grown, TypedPrefixes(grown)
        if grown or typed_secrets.boxes:
            # No event tells which page the keys went to, and no snapshot what it showed meanwhile.
            self.pictures.mark_all("a secret that was typed letter by letter")

    def edits(self, name: str, own: tuple[Edit, ...] = ()) -> tuple[Edit, ...]:
        """All edits of an event file; `own` are applied at their place among them."""
        events = self._events.get(name, _Events())
        # Lines are known by what they were, and what is split is found while all of it is there.
        last = (self.pictures.remove_events, self.names.update, self._prefix_forms.hide)
        return (partial(hide_typed, typed_secrets=events.typed_secrets), *own, *last)


def _is_in(event: bytes, value: str) -> bool:
    """Whether a value is in an event as it is, or as JSON writes it."""
    return any(form.encode("utf-8", "replace") in event for form in (value, _in_json(value)))


def _in_json(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]


def _has_secret(text: bytes, *, search: Search) -> bool:
    spans = search.pattern.find(text) if search.pattern.may_be_in(text) else []
    return spans is None or bool(spans)


def _has_split_secret(text: bytes, *, search: Search) -> bool:
    return next(search.in_snapshots.lines_with(text), None) is not None


def _hide(
    block: bytes, number: int, events: _Events, search: Search, *, is_changed: bool
) -> tuple[bytes, int]:
    if events.is_unseen:
        return search.pattern.hide(block)
    if number not in events.matches:
        return block, 0
    spans = events.matches[number]
    if spans is None or is_changed:
        return search.pattern.hide(block)
    return search.pattern.hide_spans(block, spans)


_MEMORY_BYTES: Final = 32 << 20
_HASH: Final = re.compile(r"(?:^|/)([0-9a-f]{40})(?:\.[^/]*)?$")


def is_by_hash(name: str) -> bool:
    """Whether a member may be named after its content's hash."""
    return _HASH.search(name) is not None


class ResourceNames:
    """Renames members that are named after their content's hash."""

    def __init__(self) -> None:
        self._new: dict[bytes, bytes] = {}
        self._pattern: Pattern | None = None
        """Finds the old hashes. None: it must be compiled again."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was renamed."""
        return not self._new

    def rename(self, name: str, *, old_hash: str, new_hash: str) -> str:
        """The new name of a member whose content's hash changed.

        A name with another hash is kept: sources are named after the hash of their path.
        """
        found = _HASH.search(name)
        if found is None or found[1] != old_hash or old_hash == new_hash:
            return name
        self._new[old_hash.encode()], self._pattern = new_hash.encode(), None
        return name[: found.start(1)] + new_hash + name[found.end(1) :]

    def update(self, block: bytes) -> tuple[bytes, int]:
        """Replace old names; the text and how many there were."""
        if not self._new:
            return block, 0
        if self._pattern is None:
            self._pattern = compile_re2(b"|".join(self._new), memory_bytes=_MEMORY_BYTES)
        out, at, count = [], 0, 0
        for match in self._pattern.finditer(block):
            out += [block[at : match.start()], self._new[match.group(0)]]
            at, count = match.end(), count + 1
        return (b"".join((*out, block[at:])), count) if count else (block, 0)
