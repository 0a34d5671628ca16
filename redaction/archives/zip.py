"""Hides secrets in a ZIP archive, member by member."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from typing import Any, Final

from redaction.archives.compressed import START_BYTES, Kind, is_json, kind_of
from redaction.archives.json_lines import BROKEN, is_json_file
from redaction.archives.limits import Budget, TooMuchError, UnsearchableFileError, each_with
from redaction.archives.search import (
    HIDDEN_IN_NAME,
    Contents,
    Edit,
    Passage,
    Search,
    Text,
    in_blocks,
)
from redaction.archives.zip_format import (
    Member,
    Packed,
    ZipWriter,
    content_of,
    members_of,
    packed_of,
    start_of,
    unpacked_of,
)
from redaction.trace.trace import PAGES, Trace, is_by_hash
from sandbox.system_calls import give_back_memory

HELD_BYTES: Final = 1 << 19
"""Size of the largest member cleaned in a thread; four copies are in memory at once."""


@dataclass(frozen=True, slots=True)
class CleanText:
    """A text without secrets."""

    replacements: int = 0
    packed: Packed | None = None
    """The compressed content. None: nothing was hidden, and the original is copied."""
    was: str = ""
    """SHA-1 of the original, for a member that is named after its hash."""
    is_now: str = ""
    is_broken: bool = False
    """It was JSON and is not any more, so it is left out."""


def clean_held(
    member: Member, packed: bytes, text: Text, *, budget: Budget, has_hash: bool
) -> CleanText:
    """Clean a member that is held in memory.

    Raises:
        UnsearchableFileError: it is not what the archive says.
    """
    held = replace(member, content_at=0)
    content = b"".join(unpacked_of(BytesIO(packed), held, budget))
    clean = b"".join(text.cleaned((content,)))
    if not text.replacements:
        return CleanText()
    if text.is_json and not is_json_file(BytesIO(clean)) and is_json_file(BytesIO(content)):
        return CleanText(is_broken=True)
    hashes = map(_sha1, (content, clean)) if has_hash else ()
    return CleanText(text.replacements, packed_of(clean), *hashes)


def _sha1(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


_PIECE_BYTES: Final = 1 << 18
_HELD_BYTES: Final = 1 << 20
"""Members up to this size are read once and held in memory."""
_NO_JSON: Final = f"a file: {BROKEN}"


class ZipCleaning:
    """Cleans one ZIP archive, member by member."""

    def __init__(self, contents: Contents, passage: Passage, search: Search) -> None:
        self._contents = contents
        self._source = passage.source
        self._writer = ZipWriter(passage.target)
        self._depth = passage.depth
        self._search = search
        """The search before the archive's own header values were added."""
        self._trace = Trace(search.header_names, search.secrets, typed=search.typed)
        self._shapes: dict[str, Shape] = {}
        """Each member's format, by its name."""
        self._alike: Counter[str] = Counter()
        """How many members have this name once secrets are hidden in it."""
        self._replacements = 0

    def run(self) -> int:
        """Write the archive without secrets and return how many there were.

        Raises:
            UnsearchableFileError: a secret could be in it and not be found.
        """
        members, comment = members_of(self._source, self._contents.budget.bounds)
        for member in members:
            self._contents.budget.spend(member.size_bytes)
            self._read_headers(member)
        search = self._joined(members)
        if self._trace.pictures.shows_secret:
            self._contents.note_shown(was_found=self._trace.shows_found)
        taken = map(self._taken, sorted(members, key=turn))
        for (member, _), text in each_with(partial(self._clean_text, search=search), taken):
            self._write(member, search, text)
        comment, count = search.pattern.hide(comment)
        self._writer.close(comment)
        return self._replacements + count

    def _read_headers(self, member: Member) -> None:
        """Detect the member's format and read its header values, to search for them everywhere."""
        start = start_of(self._source, member, START_BYTES)
        shape = shape_of(start, member.name)
        self._shapes[member.name] = shape
        if shape.kind is not Kind.PLAIN or not shape.is_json:
            return
        if not shape.is_events:
            self._trace.read(self._blocks(member))
        elif not member.name.endswith(PAGES):
            self._trace.read_log(member.name, self._blocks(member))

    def _joined(self, members: list[Member]) -> Search:
        """A search for the header values too, with every event file read under it."""
        events = [member for member in members if self._shapes[member.name].is_events]
        pages = [member for member in events if member.name.endswith(PAGES)]
        search = self._search.joined(self._trace.headers.found)
        self._trace.know_found(self._search, search)
        for member in pages:
            self._trace.read_events(member.name, self._blocks(member), search)
        joined = search.joined(self._trace.headers.found)
        self._trace.know_found(self._search, joined)
        if joined is self._search:
            for member in events:
                if member not in pages:
                    self._trace.read_again(member.name, self._blocks(member), search)
        elif joined is not search:
            for member in pages:
                self._trace.read_again(member.name, self._blocks(member), joined)
        if self._depth == 1:  # those in it look for the same, and there may be many of them
            joined.pattern.let_go_beside()
            if joined is not search:
                search.pattern.let_go()
        return joined

    def _taken(self, member: Member) -> tuple[Member, bytes | None]:
        """Load the compressed bytes of a small text that refers to no other member."""
        is_small = max(member.size_bytes, member.packed_bytes) <= HELD_BYTES
        is_plain = self._shapes[member.name].kind is Kind.PLAIN and not member.is_folder
        if not is_small or not is_plain or member.name.endswith(LINKED):
            return member, None
        return member, b"".join(content_of(self._source, member))

    def _clean_text(self, taken: tuple[Member, bytes | None], search: Search) -> CleanText | None:
        """Clean a loaded text in a thread. None: it is cleaned when it is written."""
        member, packed = taken
        if packed is None:
            return None
        text, budget = self._text(member, search), self._contents.budget
        return clean_held(member, packed, text, budget=budget, has_hash=is_by_hash(member.name))

    def _write(self, member: Member, search: Search, text: CleanText | None) -> None:
        if self._trace.pictures.drops(member.name):
            what = "frame of the film strip" if "page@" in member.name else "picture of the test"
            self._leave_out(f"a {what}, whose page showed a secret")
            return
        named = self._named(member, search)
        shape = self._shapes[member.name]
        if member.is_folder:
            self._writer.add_packed(named, ())
        elif shape.kind is Kind.PICTURE:
            self._write_picture(member, named, search)
        elif shape.kind is not Kind.PLAIN:
            self._write_archive(member, named, search)
        elif text is not None:
            self._write_held(member, named, text)
        elif shape.is_events and self._trace.is_aligned(member.name):
            self._write_events(member, named, search)
        else:
            self._write_text(member, named, search)

    def _named(self, member: Member, search: Search) -> Member:
        name, in_name = search.hide_in_name(member.name.encode("utf-8", "surrogateescape"))
        comment, in_comment = search.pattern.hide(member.comment)
        self._replacements += in_name + in_comment
        named = name.decode("utf-8", "surrogateescape")
        if in_name:
            named = self._numbered(named)
        if named in self._writer.names:
            raise UnsearchableFileError("it holds two zip members of one name without secrets")
        return replace(member, name=named, comment=comment)

    def _numbered(self, name: str) -> str:
        """Number the names that are equal without secrets, from the second one on."""
        self._alike[name] += 1
        before, hidden, behind = name.rpartition(HIDDEN_IN_NAME.decode())
        number = self._alike[name]
        return name if number == 1 else f"{before}{hidden}-{number}{behind}"

    def _write_picture(self, member: Member, named: Member, search: Search) -> None:
        if Text(search).needs_cleaning(self._unpacked(member)):
            self._leave_out("a picture with a secret beside its pixels")
        else:
            self._copy(member, named)

    def _write_events(self, member: Member, named: Member, search: Search) -> None:
        if not self._trace.needs_cleaning(member.name):
            self._copy(member, named)
            return
        if self._depth == 1 and search.let_go_of_pages():  # they were written before
            give_back_memory()
        edits = self._contents.edits(search, self._trace.headers, depth=self._depth)
        cleaned = self._trace.cleaned(member.name, self._blocks(member), search, edits)
        self._add(member, named, self._counted(cleaned))

    def _text(self, member: Member, search: Search) -> Text:
        shape = self._shapes[member.name]
        headers = self._trace.headers if shape.is_json else None
        edits = self._contents.edits(search, headers, depth=self._depth)
        always: tuple[Edit, ...] = ()
        if shape.is_events:
            edits, always = (), self._trace.edits(member.name, edits)
        elif member.name.endswith(LINKED):
            always = (self._trace.names.update,)
        return Text(search, edits, always=always, is_json=shape.is_json)

    def _write_held(self, member: Member, named: Member, text: CleanText) -> None:
        if text.is_broken:
            self._leave_out(_NO_JSON)
            return
        if text.packed is None:
            self._copy(member, named)
            return
        self._replacements += text.replacements
        self._writer.add_held(named, text.packed)
        if text.was:
            self._rename_last(named, was=text.was, is_now=text.is_now)

    def _write_text(self, member: Member, named: Member, search: Search) -> None:
        text = self._text(member, search)
        if member.size_bytes <= _HELD_BYTES:
            clean = b"".join(text.cleaned(self._unpacked(member)))
            needs_cleaning = text.replacements > 0
            pieces: Iterable[bytes] = (clean,)
        else:
            needs_cleaning = text.needs_cleaning(self._unpacked(member))
            pieces = text.cleaned(self._unpacked(member))
        if not needs_cleaning:
            self._copy(member, named)
        elif text.is_json:
            self._write_json(member, named, pieces)
            self._replacements += text.replacements
        else:
            self._add(member, named, pieces)
            self._replacements += text.replacements

    def _write_json(self, member: Member, named: Member, pieces: Iterable[bytes]) -> None:
        """Write JSON that is still valid; leave it out otherwise."""
        with self._contents.spool() as clean:
            clean.writelines(pieces)
            if not is_json_file(clean) and self._was_json(member):
                self._leave_out(_NO_JSON)
                return
            clean.seek(0)
            self._add(member, named, iter(lambda: clean.read(_PIECE_BYTES), b""))

    def _was_json(self, member: Member) -> bool:
        with self._contents.spool() as unpacked:
            unpacked.writelines(self._unpacked(member))
            return is_json_file(unpacked)

    def _counted(self, blocks: Iterable[tuple[bytes, int]]) -> Iterator[bytes]:
        for block, count in blocks:
            self._replacements += count
            yield block

    def _write_archive(self, member: Member, named: Member, search: Search) -> None:
        with self._contents.spool() as inner, self._contents.spool() as clean:
            for piece in self._unpacked(member):
                inner.write(piece)
            inner.seek(0)
            passage = Passage(inner, clean, member.name, self._depth + 1)
            try:
                count = self._contents.clean(passage, search)
            except TooMuchError:
                raise
            except UnsearchableFileError as problem:
                self._leave_out(f"a file that cannot be searched: {problem}")
                return
            # What lies between an archive's members is in no member.
            if count or Text(search).needs_cleaning(self._unpacked(member)):
                clean.seek(0)
                self._add(member, named, iter(lambda: clean.read(_PIECE_BYTES), b""))
                self._replacements += max(count, 1)
            else:
                self._copy(member, named)

    def _leave_out(self, because: str) -> None:
        self._contents.leave_out(because)
        self._replacements += 1

    def _copy(self, member: Member, named: Member) -> None:
        self._writer.add_packed(named, content_of(self._source, member))

    def _add(self, member: Member, named: Member, pieces: Iterable[bytes]) -> None:
        if not is_by_hash(named.name):
            self._writer.add(named, pieces)
            return
        now = hashlib.sha1(usedforsecurity=False)
        self._writer.add(named, _hashed(pieces, now))
        was = hashlib.sha1(usedforsecurity=False)
        for piece in self._unpacked(member):
            was.update(piece)
        self._rename_last(named, was=was.hexdigest(), is_now=now.hexdigest())

    def _rename_last(self, named: Member, *, was: str, is_now: str) -> None:
        """Rename the last member after its new hash."""
        renamed = self._trace.names.renamed(named.name, was=was, is_now=is_now)
        if renamed != named.name:
            self._writer.rename_last(renamed)

    def _blocks(self, member: Member) -> Iterator[bytes]:
        return in_blocks(self._unpacked(member))

    def _unpacked(self, member: Member) -> Iterator[bytes]:
        return unpacked_of(self._source, member, self._contents.budget)


def _hashed(pieces: Iterable[bytes], digest: Any) -> Iterator[bytes]:
    for piece in pieces:
        digest.update(piece)
        yield piece


_LINES: Final = (".trace", ".network", ".stacks", ".jsonl")
LINKED: Final = (*_LINES, ".har", ".json")
"""Members that may refer to others by name, so they are written last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A member's format."""

    kind: Kind | None
    """The kind. None: it cannot be searched."""
    is_json: bool
    is_events: bool
    """Whether it is an event file of a trace: one JSON object a line."""


def shape_of(start: bytes, name: str) -> Shape:
    """Detect a member's format by its first bytes and its name."""
    return Shape(
        kind=_kind_of(start, name),
        is_json=is_json(start),
        is_events=is_json(start) and name.endswith(_LINES),
    )


def turn(member: Member) -> int:
    """The sort key of a member: those that refer to others come last."""
    if member.name.endswith(_LINES):
        return 2
    return 1 if member.name.endswith(LINKED) and not is_by_hash(member.name) else 0


def _kind_of(start: bytes, name: str) -> Kind | None:
    try:
        return kind_of(start, name)
    except UnsearchableFileError:
        return None
