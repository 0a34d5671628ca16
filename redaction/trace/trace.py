"""Hides secrets in the events, resources and pictures of a trace."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final

import re2

from redaction.archives.headers import HeaderHiding
from redaction.archives.json_lines import with_valid_lines
from redaction.archives.limits import each_with
from redaction.archives.search import Edit, Search, Seen
from redaction.matcher import Span
from redaction.policy import beginnings_of
from redaction.replacer import SecretPattern
from redaction.trace.snapshots import Beginnings
from redaction.trace.typed import KeyEvents, Spelled, Spelling, hide_spelled

PAGES: Final = ".trace"
"""How members end that tell of pages."""
_SPELLING: Final = (PAGES, ".jsonl")
"""Members whose lines may spell something together."""


@dataclass(slots=True)
class _Events:
    """What one member of events was found to hold."""

    spelled: Spelled = field(default_factory=Spelled)
    seen: dict[int, list[Span] | None] = field(default_factory=dict)
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
        spelling = Spelling(self._words if name.endswith(_SPELLING) else KeyEvents(()))
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

    def _look_for_pages(self, block: bytes, covers: list[Span] | None, search: Search) -> None:
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
    def _words(self) -> KeyEvents:
        begun = (one for secret in self._typed for one in beginnings_of(secret))
        return KeyEvents((*self._secrets, *begun))

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


_STRING: Final = rb'"(?:[^"\\]|\\.)*"'
_HEAD_BYTES: Final = 600
_END_BYTES: Final = 300
"""Of a line: events of the console name their page behind all texts."""
_PAGE: Final = re.compile(rb'"pageId":"([^"]+)"')
_FRAME_OF: Final = re.compile(r"(?:^|/)(page@[0-9a-f]+)-")
_SHOWS: Final = re.compile(rb'"type":"(?:frame-snapshot|console)"')
_INPUT: Final = re.compile(
    rb'"method":"(?:fill|type|press|keyboard\w+|selectOption|setContent|evaluate\w*|setInputFiles)"'
)
_ANY_PAGE: Final = b"*"
"""Stands for all of them, where an event does not tell which one."""
_ATTACHED: Final = b'"attachments":['
_SCREENCAST: Final = b'"type":"screencast-frame"'
_OF_PICTURE: Final = re.compile(rb'"contentType":"(?:image|video)/')
_WHERE: Final = re.compile(rb'"(?:file|sha1|path)":"([^"]+)"')


def _compile(source: bytes) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return re2.compile(source, options)


_ATTACHMENTS: Final = _compile(rb'"attachments":\[((?:[^"\]]|' + _STRING + rb")*)\]")
_ATTACHMENT: Final = _compile(rb'\{(?:[^"{}]|' + _STRING + rb")*\}")


class TracePictures:
    """Learns from a trace's events; then knows which pictures must go."""

    def __init__(self) -> None:
        self._pages: set[bytes] = set()
        """Those that had a secret in them."""
        self._attached: set[str] = set()
        """Names of pictures that the test attached, a folder before them or not."""

    @property
    def shows_secret(self) -> bool:
        """Whether any page had one."""
        return bool(self._pages)

    def is_everywhere(self) -> None:
        """It is not known which page had one."""
        self._pages.add(_ANY_PAGE)

    def look_for_attached(self, block: bytes) -> None:
        """Read some events for pictures that the test attached."""
        if _ATTACHED in block:
            self._attached.update(_attached_pictures(block))

    def look_for_pages(self, lines: Iterable[bytes], pattern: SecretPattern | None) -> None:
        """Read some events for where the secrets in them were.

        `pattern`: of the secrets. None: it is known that each event has some.
        """
        if _ANY_PAGE in self._pages:
            return
        for line in lines:
            page = self._page_in_question(line)
            if page is not None and (pattern is None or pattern.may_be_in(line)):
                self._pages.add(page)

    def drops(self, name: str) -> bool:
        """Whether the member of this name must go."""
        frame = _FRAME_OF.search(name)
        if frame is not None:
            return self._shows(frame[1].encode())
        return self.shows_secret and (
            name in self._attached or name.rpartition("/")[2] in self._attached
        )

    def without(self, block: bytes) -> tuple[bytes, int]:
        """The events without those of pictures that must go, and how many were changed."""
        if not self.shows_secret or (_SCREENCAST not in block and _ATTACHED not in block):
            return block, 0
        lines, kept, changed = block.split(b"\n"), [], 0
        for line in lines:
            if not self._is_of_dropped(line):
                kept.append(_kept(line))
                changed += kept[-1] != line
        count = len(lines) - len(kept) + changed
        return (b"\n".join(kept), count) if count else (block, 0)

    def _page_in_question(self, line: bytes) -> bytes | None:
        """Which page a secret in this line would be on. None: it is known already, or on none."""
        head = line[:_HEAD_BYTES]
        if _SHOWS.search(head) is None and _INPUT.search(head) is None:
            return None
        page = _page_of(line, head)
        return None if page in self._pages else page

    def _is_of_dropped(self, line: bytes) -> bool:
        if _SCREENCAST not in line[:_HEAD_BYTES]:
            return False
        page = _PAGE.search(line)
        return self._shows(b"" if page is None else page[1])

    def _shows(self, page: bytes) -> bool:
        return page in self._pages or _ANY_PAGE in self._pages


def lines_with(covers: list[Span], block: bytes) -> Iterator[bytes]:
    """The lines in which something is covered, each once."""
    end = -1
    for cover in covers:
        if cover.end <= end:
            continue
        start = max(end, block.rfind(b"\n", 0, cover.start + 1)) + 1
        end = block.find(b"\n", max(start, cover.end - 1))
        end = end if end >= 0 else len(block)
        yield from block[start:end].split(b"\n")


def _page_of(line: bytes, head: bytes) -> bytes:
    named = _PAGE.search(head)
    if named is not None:
        return named[1]
    pages = _PAGE.findall(line[-_END_BYTES:])
    return pages[-1] if pages else _ANY_PAGE


def _kept(line: bytes) -> bytes:
    return _ATTACHMENTS.sub(_without_pictures, line) if _ATTACHED in line else line


def _attached_pictures(block: bytes) -> set[str]:
    found = set()
    for listed in _ATTACHMENTS.finditer(block):
        for one in _ATTACHMENT.findall(listed[1]):
            where = _WHERE.search(one)
            if where is not None and _OF_PICTURE.search(one):
                found.add(where[1].decode("utf-8", "replace"))
    return found


def _without_pictures(listed: Any) -> bytes:
    kept = [one for one in _ATTACHMENT.findall(listed[1]) if not _OF_PICTURE.search(one)]
    return b'"attachments":[' + b",".join(kept) + b"]"


_MEMORY_BYTES: Final = 32 << 20
_HASH: Final = re.compile(r"(?:^|/)([0-9a-f]{40})(?:\.[^/]*)?$")


def is_by_hash(name: str) -> bool:
    """Whether a member may be called by its content's hash."""
    return _HASH.search(name) is not None


class ResourceNames:
    """Which hashes became which."""

    def __init__(self) -> None:
        self._new: dict[bytes, bytes] = {}
        self._pattern: Any = None
        """Finds the hashes that are no more. None: they are not all known yet."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was renamed."""
        return not self._new

    def renamed(self, name: str, *, was: str, is_now: str) -> str:
        """What to call a member whose content had one hash and has another now.

        A name that holds another hash stays: sources are called by the hash of their path.
        """
        found = _HASH.search(name)
        if found is None or found[1] != was or was == is_now:
            return name
        self._new[was.encode()], self._pattern = is_now.encode(), None
        return name[: found.start(1)] + is_now + name[found.end(1) :]

    def update(self, block: bytes) -> tuple[bytes, int]:
        """The text with the names as they are now, and how many it had."""
        if not self._new:
            return block, 0
        self._pattern = self._pattern or _any_of(self._new)
        out, at, count = [], 0, 0
        for match in self._pattern.finditer(block):
            out += [block[at : match.start()], self._new[match.group(0)]]
            at, count = match.end(), count + 1
        return (b"".join((*out, block[at:])), count) if count else (block, 0)


def _any_of(hashes: Iterable[bytes]) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY_BYTES
    return re2.compile(b"|".join(hashes), options)
