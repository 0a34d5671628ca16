"""Hides secrets in a ZIP archive, member by member."""

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from typing import Any, BinaryIO, Final

from redaction.archives.compressed import START_BYTES, Kind, detect_kind, is_json
from redaction.archives.json_lines import BROKEN, is_json_file
from redaction.archives.limits import Bounds, Budget, UnsearchableFileError, map_ahead
from redaction.archives.search import (
    HIDDEN_IN_NAME,
    CleaningTask,
    Edit,
    MemberCleaner,
    Search,
    TextCleaner,
    select_picture_edits,
    split_blocks,
)
from redaction.archives.zip_format import (
    CompressedContent,
    Member,
    ZipWriter,
    compress_content,
    decompress_member,
    read_compressed,
    read_members,
    read_start,
)
from redaction.trace.trace import PAGES, Trace, is_by_hash
from sandbox.system_calls import give_back_memory

LOADED_BYTES: Final = 1 << 19
"""Size of the largest member cleaned in a thread; four copies are in memory at once."""


_NO_JSON: Final = f"file: {BROKEN}"
UNSEARCHABLE: Final = "file that cannot be searched"


@dataclass(frozen=True, slots=True)
class CleanText:
    """A text without secrets."""

    replacements: int = 0
    compressed: CompressedContent | None = None
    """The compressed content. None: nothing was hidden, and the original is copied."""
    old_hash: str = ""
    """SHA-1 of the original, for a member that is named after its hash."""
    new_hash: str = ""
    left_out: str = ""
    """Why it is left out. Empty: it is not."""


def remove_members(
    source: BinaryIO, target: BinaryIO, names: Container[str], bounds: Bounds
) -> None:
    """Copy an archive without the members of these names.

    Raises:
        UnsearchableFileError: it is broken.
    """
    writer = ZipWriter(target)
    members, comment = read_members(source, bounds)
    for member in members:
        if member.name not in names:
            writer.add_compressed(member, read_compressed(source, member))
    writer.close(comment)


def clean_loaded(
    member: Member, compressed: bytes, text: TextCleaner, *, budget: Budget, has_hash: bool
) -> CleanText:
    """Clean a member that is held in memory.

    Raises:
        UnsearchableFileError: it is not what the archive says.
    """
    held = replace(member, content_at=0)
    content = b"".join(decompress_member(BytesIO(compressed), held, budget))
    try:
        clean = b"".join(text.clean((content,)))
    except UnsearchableFileError as problem:
        return CleanText(left_out=f"{UNSEARCHABLE}: {problem}")
    if not text.replacements:
        return CleanText()
    if text.is_json and not is_json_file(BytesIO(clean)) and is_json_file(BytesIO(content)):
        return CleanText(left_out=_NO_JSON)
    hashes = map(_sha1, (content, clean)) if has_hash else ()
    return CleanText(text.replacements, compress_content(clean), *hashes)


def _sha1(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


_PIECE_BYTES: Final = 1 << 18
_HELD_BYTES: Final = 1 << 20
"""Members up to this size are read once and held in memory."""


class ZipCleaning:
    """Cleans one ZIP archive, member by member."""

    def __init__(self, contents: MemberCleaner, task: CleaningTask, search: Search) -> None:
        self._contents = contents
        self._source = task.source
        self._writer = ZipWriter(task.target)
        self._depth = task.depth
        self._search = search
        """The search before the archive's own header values were added."""
        self._trace = Trace(
            search.header_names, search.secrets, typed=search.typed, names=search.names
        )
        self._formats: dict[str, MemberFormat] = {}
        """Each member's format, by its name."""
        self._name_counts: Counter[str] = Counter()
        """How many members have this name once secrets are hidden in it."""
        self._shows_pages = False
        """Whether it is a trace, which tells what its pictures show."""
        self._replacements = 0

    def run(self) -> int:
        """Write the archive without secrets and return how many there were.

        Raises:
            UnsearchableFileError: a secret could be in it and not be found.
        """
        members, comment = read_members(self._source, self._contents.budget.bounds)
        self._shows_pages = any(member.name.endswith(PAGES) for member in members)
        for member in members:
            self._contents.budget.spend(member.size_bytes)
            self._read_headers(member)
        search = self._read_found(members)
        if self._trace.pictures.shows_secret:
            self._contents.note_shown(was_found=self._trace.shows_found)
        loaded = map(self._load, sorted(members, key=write_order))
        for (member, _), text in map_ahead(partial(self._clean_text, search=search), loaded):
            self._write(member, search, text)
        comment, count = search.pattern.hide(comment)
        self._writer.close(comment)
        return self._replacements + count

    def _read_headers(self, member: Member) -> None:
        """Detect the member's format and read its header values, to search for them everywhere."""
        start = read_start(self._source, member, START_BYTES)
        member_format = detect_format(start, member.name)
        self._formats[member.name] = member_format
        if member_format.kind is not Kind.PLAIN or not member_format.is_json:
            return
        if not member_format.is_events:
            self._trace.read(self._blocks(member))
        elif not member.name.endswith(PAGES):
            self._trace.read_log(member.name, self._blocks(member))

    def _read_found(self, members: list[Member]) -> Search:
        """A search for the header values too, with every event file read under it."""
        events = [member for member in members if self._formats[member.name].is_events]
        pages = [member for member in events if member.name.endswith(PAGES)]
        search = self._search.with_found(self._trace.headers.found)
        self._trace.set_found(self._search, search)
        for member in pages:
            self._trace.read_events(member.name, self._blocks(member), search)
        joined = search.with_found(self._trace.headers.found)
        self._trace.set_found(self._search, joined)
        if joined is self._search:
            for member in events:
                if member not in pages:
                    self._trace.read_again(member.name, self._blocks(member), search)
        elif joined is not search:
            for member in pages:
                self._trace.read_again(member.name, self._blocks(member), joined)
        if self._depth == 1:  # those in it look for the same, and there may be many of them
            joined.pattern.free_hint()
            if joined is not search:
                search.pattern.free()
        return joined

    def _load(self, member: Member) -> tuple[Member, bytes | None]:
        """Load the compressed bytes of a small text that refers to no other member."""
        is_small = max(member.size_bytes, member.packed_bytes) <= LOADED_BYTES
        is_plain = self._formats[member.name].kind is Kind.PLAIN and not member.is_folder
        if not is_small or not is_plain or member.name.endswith(LINKED):
            return member, None
        return member, b"".join(read_compressed(self._source, member))

    def _clean_text(self, loaded: tuple[Member, bytes | None], search: Search) -> CleanText | None:
        """Clean a loaded text in a thread. None: it is cleaned when it is written."""
        member, compressed = loaded
        if compressed is None:
            return None
        text, budget = self._text(member, search), self._contents.budget
        return clean_loaded(
            member, compressed, text, budget=budget, has_hash=is_by_hash(member.name)
        )

    def _write(self, member: Member, search: Search, text: CleanText | None) -> None:
        if self._trace.pictures.removes(member.name):
            what = "film strip frame" if "page@" in member.name else "attached picture"
            shown = self._trace.pictures.describe_shown(member.name)
            self._leave_out(f"{what} of a page that showed {shown}")
            return
        renamed = self._rename(member, search)
        member_format = self._formats[member.name]
        if member.is_folder:
            self._writer.add_compressed(renamed, ())
        elif member_format.kind is Kind.PICTURE:
            self._write_picture(member, renamed, search)
        elif member_format.kind is not Kind.PLAIN:
            self._write_archive(member, renamed, search)
        elif text is not None:
            self._write_held(member, renamed, text)
        elif member_format.is_events and self._trace.is_aligned(member.name):
            self._write_events(member, renamed, search)
        else:
            self._write_text(member, renamed, search)

    def _rename(self, member: Member, search: Search) -> Member:
        name, in_name = search.hide_in_name(member.name.encode("utf-8", "surrogateescape"))
        comment, in_comment = search.pattern.hide(member.comment)
        self._replacements += in_name + in_comment
        renamed = name.decode("utf-8", "surrogateescape")
        if in_name:
            renamed = self._number_name(renamed)
        if renamed in self._writer.names:
            raise UnsearchableFileError(
                "it has two zip members whose names are equal without secrets"
            )
        return replace(member, name=renamed, comment=comment)

    def _number_name(self, name: str) -> str:
        """Number the names that are equal without secrets, from the second one on."""
        self._name_counts[name] += 1
        before, hidden, behind = name.rpartition(HIDDEN_IN_NAME.decode())
        number = self._name_counts[name]
        return name if number == 1 else f"{before}{hidden}-{number}{behind}"

    def _write_picture(self, member: Member, renamed: Member, search: Search) -> None:
        if not self._shows_pages and search.withholds_pictures:
            self._leave_out("picture or video that may show a secret")
        elif TextCleaner(search).needs_cleaning(self._decompress(member)):
            self._leave_out("picture with a secret in its metadata")
        else:
            self._copy(member, renamed)

    def _write_events(self, member: Member, renamed: Member, search: Search) -> None:
        if not self._trace.needs_cleaning(member.name):
            self._copy(member, renamed)
            return
        if self._depth == 1 and search.free_html():  # they were written before
            give_back_memory()
        edits = self._contents.edits(search, self._trace.headers, depth=self._depth)
        cleaned = self._trace.clean_blocks(member.name, self._blocks(member), search, edits)
        self._add(member, renamed, self._count_replacements(cleaned))

    def _text(self, member: Member, search: Search) -> TextCleaner:
        member_format = self._formats[member.name]
        headers = self._trace.headers if member_format.is_json else None
        edits = self._contents.edits(search, headers, depth=self._depth)
        always: tuple[Edit, ...] = ()
        if member_format.is_json and not self._shows_pages:
            always = select_picture_edits(search)
        if member_format.is_events:
            edits, always = (), (*always, *self._trace.edits(member.name, edits))
        elif member.name.endswith(LINKED):
            always = (*always, self._trace.names.update)
        return TextCleaner(search, edits, always=always, is_json=member_format.is_json)

    def _write_held(self, member: Member, renamed: Member, text: CleanText) -> None:
        if text.left_out:
            self._leave_out(text.left_out)
            return
        if text.compressed is None:
            self._copy(member, renamed)
            return
        self._replacements += text.replacements
        self._writer.add_content(renamed, text.compressed)
        if text.old_hash:
            self._rename_last(renamed, old_hash=text.old_hash, new_hash=text.new_hash)

    def _write_text(self, member: Member, renamed: Member, search: Search) -> None:
        text = self._text(member, search)
        if member.size_bytes <= _HELD_BYTES:
            clean = b"".join(text.clean(self._decompress(member)))
            needs_cleaning = text.replacements > 0
            pieces: Iterable[bytes] = (clean,)
        else:
            needs_cleaning = text.needs_cleaning(self._decompress(member))
            pieces = text.clean(self._decompress(member))
        if not needs_cleaning:
            self._copy(member, renamed)
        elif text.is_json:
            self._write_json(member, renamed, pieces)
            self._replacements += text.replacements
        else:
            self._add(member, renamed, pieces)
            self._replacements += text.replacements

    def _write_json(self, member: Member, renamed: Member, pieces: Iterable[bytes]) -> None:
        """Write JSON that is still valid; leave it out otherwise."""
        with self._contents.spool() as clean:
            clean.writelines(pieces)
            if not is_json_file(clean) and self._was_json(member):
                self._leave_out(_NO_JSON)
                return
            clean.seek(0)
            self._add(member, renamed, iter(lambda: clean.read(_PIECE_BYTES), b""))

    def _was_json(self, member: Member) -> bool:
        with self._contents.spool() as unpacked:
            unpacked.writelines(self._decompress(member))
            return is_json_file(unpacked)

    def _count_replacements(self, blocks: Iterable[tuple[bytes, int]]) -> Iterator[bytes]:
        for block, count in blocks:
            self._replacements += count
            yield block

    def _write_archive(self, member: Member, renamed: Member, search: Search) -> None:
        with self._contents.spool() as inner, self._contents.spool() as clean:
            for piece in self._decompress(member):
                inner.write(piece)
            inner.seek(0)
            task = CleaningTask(inner, clean, member.name, self._depth + 1)
            try:
                count = self._contents.clean(task, search)
            except UnsearchableFileError as problem:
                self._leave_out(f"{UNSEARCHABLE}: {problem}")
                return
            # What lies between an archive's members is in no member.
            if count or TextCleaner(search).needs_cleaning(self._decompress(member)):
                clean.seek(0)
                self._add(member, renamed, iter(lambda: clean.read(_PIECE_BYTES), b""))
                self._replacements += max(count, 1)
            else:
                self._copy(member, renamed)

    def _leave_out(self, because: str) -> None:
        self._contents.leave_out(because)
        self._replacements += 1

    def _copy(self, member: Member, renamed: Member) -> None:
        self._writer.add_compressed(renamed, read_compressed(self._source, member))

    def _add(self, member: Member, renamed: Member, pieces: Iterable[bytes]) -> None:
        if not is_by_hash(renamed.name):
            self._writer.add(renamed, pieces)
            return
        now = hashlib.sha1(usedforsecurity=False)
        self._writer.add(renamed, _hash_pieces(pieces, now))
        old_hash = hashlib.sha1(usedforsecurity=False)
        for piece in self._decompress(member):
            old_hash.update(piece)
        self._rename_last(renamed, old_hash=old_hash.hexdigest(), new_hash=now.hexdigest())

    def _rename_last(self, renamed: Member, *, old_hash: str, new_hash: str) -> None:
        """Rename the last member after its new hash."""
        name = self._trace.names.rename(renamed.name, old_hash=old_hash, new_hash=new_hash)
        if name != renamed.name:
            self._writer.rename_last(name)

    def _blocks(self, member: Member) -> Iterator[bytes]:
        return split_blocks(self._decompress(member))

    def _decompress(self, member: Member) -> Iterator[bytes]:
        return decompress_member(self._source, member, self._contents.budget)


def _hash_pieces(pieces: Iterable[bytes], digest: Any) -> Iterator[bytes]:
    for piece in pieces:
        digest.update(piece)
        yield piece


_LINES: Final = (".trace", ".network", ".stacks", ".jsonl")
LINKED: Final = (*_LINES, ".har", ".json")
"""Members that may refer to others by name, so they are written last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFormat:
    """A member's format."""

    kind: Kind | None
    """The kind. None: it cannot be searched."""
    is_json: bool
    is_events: bool
    """Whether it is an event file of a trace: one JSON object a line."""


def detect_format(start: bytes, name: str) -> MemberFormat:
    """Detect a member's format by its first bytes and its name."""
    return MemberFormat(
        kind=_kind_of(start, name),
        is_json=is_json(start),
        is_events=is_json(start) and name.endswith(_LINES),
    )


def write_order(member: Member) -> int:
    """The sort key of a member: those that refer to others come last."""
    if member.name.endswith(_LINES):
        return 2
    return 1 if member.name.endswith(LINKED) and not is_by_hash(member.name) else 0


def _kind_of(start: bytes, name: str) -> Kind | None:
    try:
        return detect_kind(start, name)
    except UnsearchableFileError:
        return None
