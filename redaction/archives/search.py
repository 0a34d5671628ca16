"""Hides secrets in one file's text or bytes, block by block."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import BinaryIO, Final, NamedTuple, Protocol

from redaction.archives import compressed, headers
from redaction.archives.headers import HeaderRedactor
from redaction.archives.json_lines import Numbers
from redaction.archives.limits import Budget
from redaction.compiled import Pattern, compile_re2
from redaction.matcher import Span, begins_within
from redaction.policy import HIDDEN, SENSITIVE_HEADERS, select_usable, with_prefixes
from redaction.replacer import RedactingStream, SecretPattern
from redaction.trace.snapshots import HTML, SNAPSHOTS, SplitTexts, compile_freeable

Edit = Callable[[bytes], tuple[bytes, int]]
"""Removes something from a block and counts how often it was there."""
_OVERLAP_BYTES: Final = 1 << 16
"""How much of a block's end is searched again with the next block."""
HIDDEN_IN_NAME: Final = b"hidden"
"""Replaces a secret in a file's name."""


class BlockMatches(NamedTuple):
    """What the search found in one block of JSON."""

    spans: list[Span] | None
    """Where secrets are. None: unknown, so the block must be searched again."""
    has_hint: bool
    """Whether the prefilter for all other forms matched."""


class Search:
    """The secrets of a run and the patterns that find them in each format."""

    def __init__(  # noqa: PLR0913 - of one search
        self,
        secrets: tuple[str, ...],
        *,
        typed: tuple[str, ...] = (),
        out_of_sight: tuple[str, ...] = (),
        header_names: frozenset[str] = SENSITIVE_HEADERS,
        withholds_pictures: bool = False,
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.secrets = secrets
        self.names = names
        """What people call the secrets that have a name, by value."""
        self.typed = typed
        """Secrets that were typed letter by letter, so pages may show prefixes of them."""
        self.out_of_sight = out_of_sight
        """Secrets that no script of the run was given."""
        self.header_names = header_names
        """Lower-case names of headers whose values are always secret."""
        self.withholds_pictures = withholds_pictures
        """Whether pictures that no trace tells of are left out, as they may show a secret."""
        self.numbers = Numbers(with_prefixes(secrets, typed))
        self.in_snapshots = SplitTexts(secrets, SNAPSHOTS)
        self.in_html = SplitTexts(secrets, HTML)
        self.pattern = SecretPattern(secrets, typed=typed, hint=self._hint_in_json)

    def find_in_block(self, block: bytes) -> BlockMatches:
        """What a block of JSON holds; one look for all, where there is little of it."""
        found = self.pattern.find_with_hint(block)
        if found is None:
            has_hint = self.has_hint(block, is_json=True)
            return BlockMatches(self.pattern.find(block), has_hint)
        has_hint = any(self._is_certain_hint(place, block) for place in found.hints)
        return BlockMatches(found.spans, has_hint)

    def _is_certain_hint(self, place: tuple[int, int], block: bytes) -> bool:
        """Whether a hint that begins there is at more than a split text by chance."""
        return begins_within(place, block, (self._elsewhere,)) or self.in_snapshots.may_begin_in(
            place, block
        )

    def has_hint(self, block: bytes, *, is_json: bool) -> bool:
        """Whether anything but the secrets' usual forms may be in a block; one look for all."""
        hint = self._in_json if is_json else self._in_text
        if hint.search(block) is None:
            return False
        # What only hints at a split text does so by chance in every hundredth hash.
        return not is_json or self._may_be_split(block) or self._elsewhere.search(block) is not None

    def _may_be_split(self, block: bytes) -> bool:
        return next(self.in_snapshots.lines(block), None) is not None

    @cached_property
    def _in_json(self) -> Pattern:
        return compile_freeable(self._hint_in_json)

    @cached_property
    def _hint_in_json(self) -> str:
        return "|".join(filter(None, (self.in_snapshots.hint, *self._hints)))

    @cached_property
    def _elsewhere(self) -> Pattern:
        return compile_freeable("|".join(self._hints))

    @cached_property
    def _hints(self) -> tuple[str, ...]:
        """At what may be in any line of JSON."""
        hints = (self.numbers.hint, headers.hint(self.header_names), compressed.HINT)
        return tuple(filter(None, hints))

    @cached_property
    def _in_text(self) -> Pattern:
        return compile_freeable("|".join(filter(None, (self.in_html.hint, compressed.HINT))))

    def free_html(self) -> bool:
        """Let go of what other texts than JSON take, until there is another. Whether it was any."""
        self.in_html.free()
        return self.__dict__.pop("_in_text", None) is not None

    def with_found(self, found: Iterable[str]) -> "Search":
        """A search for the found secrets too; itself if there are no new ones."""
        secrets = select_usable((*self.secrets, *found))
        return self if set(secrets) <= set(self.secrets) else self.with_secrets(secrets)

    def with_secrets(self, secrets: tuple[str, ...]) -> "Search":
        """A search for other secrets with the same settings."""
        return Search(
            secrets,
            typed=tuple(one for one in self.typed if one in secrets),
            out_of_sight=self.out_of_sight,
            header_names=self.header_names,
            withholds_pictures=self.withholds_pictures,
            names=self.names,
        )

    def hide_in_name(self, name: bytes) -> tuple[bytes, int]:
        """Hide secrets in a file's name, without asterisks."""
        hidden, count = self.pattern.hide(name)
        return hidden.replace(HIDDEN.encode(), HIDDEN_IN_NAME) if count else name, count


@dataclass(slots=True)
class TextCleaner:
    """A text that is edited and then searched, block by block."""

    search: Search
    edits: tuple[Edit, ...] = ()
    """Edits of the blocks that match the prefilter."""
    always: tuple[Edit, ...] = field(default=(), kw_only=True)
    """Edits of every block, applied before `edits`."""
    is_json: bool = field(default=False, kw_only=True)
    replacements: int = field(default=0, init=False)

    def clean(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The text without secrets."""
        stream = RedactingStream(self.search.pattern)
        for block in split_blocks(pieces):
            edited, count = self._edit(block)
            self.replacements += count
            yield stream.feed(edited)
        yield stream.finish()
        self.replacements += stream.replacements

    def needs_cleaning(self, pieces: Iterable[bytes]) -> bool:
        """Whether there is anything to hide; it reads no further than the first of it."""
        end = b""
        for block in split_blocks(pieces):
            if self._edit(block)[1]:
                return True
            if self.search.pattern.may_be_in(end + block):
                return True
            end = block[-_OVERLAP_BYTES:]
        return False

    def _edit(self, block: bytes) -> tuple[bytes, int]:
        total, edits = 0, self.always
        if self.edits and self.search.has_hint(block, is_json=self.is_json):
            edits = (*edits, *self.edits)
        for edit in edits:
            block, count = edit(block)
            total += count
        return block, total


_PICTURE_BODY: Final = compile_re2(
    rb'("(?:body|base64)"\s*:\s*")(?:iVBORw0KGg|/9j/|R0lGOD|GkXfo|UklGR)[A-Za-z0-9+/]*={0,2}'
)
"""An attachment of Playwright's JSON report that is a picture or a video."""


def select_picture_edits(search: Search) -> tuple[Edit, ...]:
    """Select what empties the pictures in a report that may show a secret."""
    return (_empty_picture_bodies,) if search.withholds_pictures else ()


def _empty_picture_bodies(block: bytes) -> tuple[bytes, int]:
    return _PICTURE_BODY.subn(rb"\1", block)


@dataclass(frozen=True, slots=True)
class CleaningTask:
    """A file to clean, and where to write it."""

    source: BinaryIO
    target: BinaryIO
    name: str
    """The file's name in its folder or archive."""
    depth: int = 1
    """How many files it is nested in, itself included."""


class MemberCleaner(Protocol):
    """What archives call to clean their members: `Cleaner`, which imports them."""

    budget: Budget

    def spool(self) -> BinaryIO:
        """Open a temporary file for a decompressed member; closing it deletes it."""

    def clean(self, task: CleaningTask, search: Search) -> int:
        """Write the source without secrets to the target and return how many there were."""

    def edits(
        self, search: Search, headers: HeaderRedactor | None, *, depth: int
    ) -> tuple[Edit, ...]:
        """The edits of a text before it is searched; without `headers` it is not JSON."""

    def note_shown(self, *, was_found: bool) -> None:
        """Record that a page displayed a secret; `was_found`: one found in the archive itself."""

    def leave_out(self, because: str) -> None:
        """Count a member that is left out of its archive."""


BLOCK_BYTES: Final = 1 << 18
LONGEST_BYTES: Final = 8 << 20
"""The longest line that is kept whole; a longer one is cut anywhere."""
_COOKIES: Final = b'"cookies"'
_CLOSED: Final = re.compile(
    rb'"cookies"(?!\s*:\s*\[)|"cookies"\s*:\s*\[(?:[^"\]]|"(?:[^"\\]|\\.)*+")*+\]'
)


def split_blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Split into blocks that end with a line and outside objects of indented JSON."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size < BLOCK_BYTES:
            continue
        block = b"".join(held)
        end = _before_cookies(block, _end_of_lines(block, size - len(piece)))
        if end == 0 and size < LONGEST_BYTES:
            continue
        yield block[: end or size]
        rest = block[end or size :]
        held, size = [rest], len(rest)
    if size:
        yield b"".join(held)


def _end_of_lines(text: bytes, known: int) -> int:
    """Behind the last object that ends a line, or else behind the last line. 0: there is none.

    `known`: so much of its beginning was found through before.
    """
    end = text.rfind(b"}\n", known) + 1
    # No more than what follows is found through.
    further = text.rfind(b"},\n", max(end, known)) + 1
    if further:
        return further + len(b",\n")
    return end + len(b"\n") if end else text.rfind(b"\n", known) + 1


def _before_cookies(text: bytes, end: int) -> int:
    """That place, or before a list of cookies that it is in: all of these are hidden. 0: none."""
    if _COOKIES not in text:  # to look for them from the end takes longer
        return end
    begins = text.rfind(_COOKIES, 0, end)
    if begins < 0 or _CLOSED.match(text, begins, end) is not None:
        return end
    return text.rfind(b"\n", 0, begins) + 1
