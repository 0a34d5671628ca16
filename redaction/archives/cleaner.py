"""Hides secrets in a file by its kind: plain, compressed, a ZIP or a tar archive."""

import copy
import shutil
import tarfile
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, cast

from redaction.archives.compressed import (
    START_BYTES,
    Kind,
    clean_embedded,
    compress,
    decompress,
    detect_kind,
    is_json,
)
from redaction.archives.headers import HeaderRedactor
from redaction.archives.json_lines import BROKEN, is_json_file
from redaction.archives.limits import Bounds, Budget, TooMuchError, UnsearchableFileError
from redaction.archives.search import (
    CleaningTask,
    Edit,
    MemberCleaner,
    Search,
    TextCleaner,
    select_picture_edits,
    split_blocks,
)
from redaction.archives.zip import ZipCleaning

PIECE_BYTES: Final = 1 << 18


class Cleaner:
    """Cleans one file and every file inside it, within one budget."""

    def __init__(self, *, folder: Path, bounds: Bounds) -> None:
        self._folder = folder
        self.budget = Budget(bounds)
        self.shows_secret = False
        """Whether a trace shows that a page displayed a secret, as pictures then may too."""
        self.shows_found = False
        """Whether a page displayed a secret found only in the archive, such as a header's value."""
        self.left_out: Counter[str] = Counter()
        """How many members were left out of archives, by reason."""
        self._lock = threading.Lock()
        """Archives within texts are cleaned in threads."""

    def spool(self) -> BinaryIO:
        """Open a temporary file for a decompressed member; closing it deletes it."""
        return cast("BinaryIO", tempfile.TemporaryFile(dir=self._folder))

    def clean(self, task: CleaningTask, search: Search) -> int:
        """Write the source without secrets to the target and return how many there were.

        Raises:
            UnsearchableFileError: a secret could be in it and not be found.
        """
        start = task.source.read(START_BYTES)
        task.source.seek(0)
        kind = detect_kind(start, task.name)
        if kind is Kind.PLAIN:
            return self._clean_text(task, search, looks_like_json=is_json(start))
        if kind is Kind.PICTURE:
            return _copy_picture(task, search)
        self.budget.check_depth(task.depth)
        if kind is Kind.ZIP:
            return ZipCleaning(self, task, search).run()
        if kind is Kind.TAR:
            return TarCleaning(self, task).run(search)
        return self._clean_packed(kind, task, search)

    def note_shown(self, *, was_found: bool) -> None:
        """Record that a page displayed a secret; `was_found`: one found in the archive itself."""
        self.shows_secret = True
        self.shows_found = self.shows_found or was_found

    def leave_out(self, because: str) -> None:
        """Count a member that is left out of its archive."""
        with self._lock:
            self.left_out[because] += 1

    def edits(
        self, search: Search, headers: HeaderRedactor | None, *, depth: int
    ) -> tuple[Edit, ...]:
        """The edits of a text before it is searched; without `headers` it is not JSON."""

        def embedded(block: bytes) -> tuple[bytes, int]:
            return clean_embedded(block, lambda data: self._clean_data(data, search, depth=depth))

        if headers is None:
            return (search.in_html.hide, embedded)
        return (headers.hide, search.numbers.hide, search.in_snapshots.hide, embedded)

    def _clean_text(self, task: CleaningTask, search: Search, *, looks_like_json: bool) -> int:
        headers = HeaderRedactor(search.header_names) if looks_like_json else None
        if headers is not None:
            for block in split_blocks(pieces_of(task.source)):
                headers.collect(block)
            task.source.seek(0)
            search = search.with_found(headers.found)
        edits = self.edits(search, headers, depth=task.depth)
        always = select_picture_edits(search) if looks_like_json else ()
        text = TextCleaner(search, edits, always=always, is_json=looks_like_json)
        for piece in text.clean(pieces_of(task.source)):
            task.target.write(piece)
        if headers is not None and text.replacements:
            _check_that_json_stays(task)
        return text.replacements

    def _clean_packed(self, kind: Kind, task: CleaningTask, search: Search) -> int:
        with self.spool() as inner, self.spool() as clean:
            for piece in decompress(kind, pieces_of(task.source), self.budget):
                inner.write(piece)
            inner.seek(0)
            name = task.name.rpartition(".")[0]
            count = self.clean(CleaningTask(inner, clean, name, task.depth + 1), search)
            clean.seek(0)
            for piece in compress(kind, pieces_of(clean)):
                task.target.write(piece)
        return count

    def _clean_data(self, data: bytes, search: Search, *, depth: int) -> bytes | None:
        """Clean compressed data found in a text. None: nothing to hide, or not compressed data."""
        target = BytesIO()
        try:
            if detect_kind(data[:START_BYTES]) in (Kind.PLAIN, Kind.PICTURE):
                return None
            count = self.clean(CleaningTask(BytesIO(data), target, "", depth + 1), search)
        except TooMuchError:
            raise
        except UnsearchableFileError:
            return None
        return target.getvalue() if count else None


def pieces_of(file: BinaryIO) -> Iterator[bytes]:
    """The rest of a file."""
    while piece := file.read(PIECE_BYTES):
        yield piece


def _check_that_json_stays(task: CleaningTask) -> None:
    if not is_json_file(task.target) and is_json_file(task.source):
        raise UnsearchableFileError(BROKEN)
    task.target.seek(0, 2)


def _copy_picture(task: CleaningTask, search: Search) -> int:
    if TextCleaner(search).needs_cleaning(pieces_of(task.source)):
        raise UnsearchableFileError("a picture has a secret in its metadata")
    task.source.seek(0)
    shutil.copyfileobj(task.source, task.target, PIECE_BYTES)
    return 0


_FIELDS: Final = ("name", "linkname", "uname", "gname")
_WRITTEN_ANEW: Final = frozenset({"path", "linkpath", "size", "uname", "gname"})


class TarCleaning:
    """Cleans one tar archive, member by member."""

    def __init__(self, contents: MemberCleaner, task: CleaningTask) -> None:
        self._contents = contents
        self._passage = task

    def run(self, search: Search) -> int:
        """Write the archive without secrets and return how many there were.

        Raises:
            UnsearchableFileError: a secret could be in it and not be found.
        """
        total, most = 0, self._contents.budget.bounds.members
        source, target = self._passage.source, self._passage.target
        try:
            with (
                tarfile.open(fileobj=source, mode="r:") as archive,
                tarfile.open(fileobj=target, mode="w:", format=tarfile.PAX_FORMAT) as clean,
            ):
                for number, member in enumerate(archive):
                    if number >= most:
                        raise TooMuchError(f"it is an archive of over {most} members")
                    total += self._add(archive, clean, member, search)
        except (tarfile.TarError, ValueError, OSError) as problem:
            raise UnsearchableFileError("it is a broken tar archive") from problem
        return total

    def _add(
        self,
        archive: tarfile.TarFile,
        clean: tarfile.TarFile,
        member: tarfile.TarInfo,
        search: Search,
    ) -> int:
        if member.issparse() or _leads_elsewhere(member.name):
            raise UnsearchableFileError("it is a tar archive with an unusual member")
        described, count = _describe(member, search)
        content = archive.extractfile(member) if member.isreg() else None
        if content is None:
            clean.addfile(described)
            return count
        with content, self._contents.spool() as inner:
            source = cast("BinaryIO", content)
            task = CleaningTask(source, inner, member.name, self._passage.depth + 1)
            count += self._contents.clean(task, search)
            described.size = inner.tell()
            inner.seek(0)
            clean.addfile(described, inner)
        return count


def _describe(member: tarfile.TarInfo, search: Search) -> tuple[tarfile.TarInfo, int]:
    described, total = copy.copy(member), 0
    for field in _FIELDS:
        text, count = _hide(getattr(member, field), search)
        setattr(described, field, text)
        total += count
    described.pax_headers = {}
    for key, value in member.pax_headers.items():
        if key not in _WRITTEN_ANEW:
            described.pax_headers[key], count = _hide(value, search)
            total += count
    return described, total


def _hide(text: str, search: Search) -> tuple[str, int]:
    hidden, count = search.hide_in_name(text.encode("utf-8", "surrogateescape"))
    return hidden.decode("utf-8", "surrogateescape"), count


def _leads_elsewhere(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts
