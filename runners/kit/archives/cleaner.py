"""Takes secrets out of a file of any kind, and out of what it holds."""

import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final, cast

from runners.kit.archives.blocks import in_blocks
from runners.kit.archives.bounds import Bounds, Budget
from runners.kit.archives.contents import Passage
from runners.kit.archives.embedded import clean_embedded
from runners.kit.archives.headers import HeaderHiding
from runners.kit.archives.kinds import START_BYTES, Kind, is_json, kind_of
from runners.kit.archives.packing import packed, unpacked
from runners.kit.archives.search import Edit, Search, Text
from runners.kit.archives.tar_cleaning import TarCleaning
from runners.kit.archives.unsearchable import TooMuchError, UnsearchableFileError
from runners.kit.archives.valid_lines import BROKEN, is_json_file
from runners.kit.archives.zip_cleaning import ZipCleaning

PIECE_BYTES: Final = 1 << 18


class Cleaner:
    """Cleans one file; it knows what is left of its bounds."""

    def __init__(self, *, folder: Path, bounds: Bounds) -> None:
        self._folder = folder
        self.budget = Budget(bounds)
        self.shows_secret = False
        """Whether a trace tells that a page showed a secret, so that pictures of it may too."""
        self.shows_found = False
        """Whether what the page showed was come upon in the archive, as a header's value."""
        self.left_out: Counter[str] = Counter()
        """Why files of archives do not leave with them, and how many each time."""
        self._lock = threading.Lock()
        """Archives within texts are cleaned in threads."""

    def spool(self) -> BinaryIO:
        """A file for what a member unpacks to, gone once it is closed."""
        return cast("BinaryIO", tempfile.TemporaryFile(dir=self._folder))

    def clean(self, passage: Passage, search: Search) -> int:
        """Write the source without secrets to the target; how many there were.

        Raises:
            UnsearchableFileError: a secret could be in it and not be found.
        """
        start = passage.source.read(START_BYTES)
        passage.source.seek(0)
        kind = kind_of(start, passage.name)
        if kind is Kind.PLAIN:
            return self._clean_text(passage, search, looks_like_json=is_json(start))
        if kind is Kind.PICTURE:
            return _copy_picture(passage, search)
        self.budget.check_depth(passage.depth)
        if kind is Kind.ZIP:
            return ZipCleaning(self, passage, search).run()
        if kind is Kind.TAR:
            return TarCleaning(self, passage).run(search)
        return self._clean_packed(kind, passage, search)

    def note_shown(self, *, was_found: bool) -> None:
        """A trace tells that a page showed a secret; `was_found`: one of its own headers."""
        self.shows_secret = True
        self.shows_found = self.shows_found or was_found

    def leave_out(self, because: str) -> None:
        """A file of an archive does not leave with it."""
        with self._lock:
            self.left_out[because] += 1

    def edits(
        self, search: Search, headers: HeaderHiding | None, *, depth: int
    ) -> tuple[Edit, ...]:
        """What is done to a text before it is searched. None: it is no JSON."""

        def embedded(block: bytes) -> tuple[bytes, int]:
            return clean_embedded(block, lambda data: self._clean_data(data, search, depth=depth))

        if headers is None:
            return (search.in_html.hide, embedded)
        return (headers.hide, search.numbers.hide, search.in_snapshots.hide, embedded)

    def _clean_text(self, passage: Passage, search: Search, *, looks_like_json: bool) -> int:
        headers = HeaderHiding(search.header_names) if looks_like_json else None
        if headers is not None:
            for block in in_blocks(pieces_of(passage.source)):
                headers.look(block)
            passage.source.seek(0)
            search = search.joined(headers.found)
        edits = self.edits(search, headers, depth=passage.depth)
        text = Text(search, edits, is_json=looks_like_json)
        for piece in text.cleaned(pieces_of(passage.source)):
            passage.target.write(piece)
        if headers is not None and text.replacements:
            _check_that_json_stays(passage)
        return text.replacements

    def _clean_packed(self, kind: Kind, passage: Passage, search: Search) -> int:
        with self.spool() as inner, self.spool() as clean:
            for piece in unpacked(kind, pieces_of(passage.source), self.budget):
                inner.write(piece)
            inner.seek(0)
            name = passage.name.rpartition(".")[0]
            count = self.clean(Passage(inner, clean, name, passage.depth + 1), search)
            clean.seek(0)
            for piece in packed(kind, pieces_of(clean)):
                passage.target.write(piece)
        return count

    def _clean_data(self, data: bytes, search: Search, *, depth: int) -> bytes | None:
        """Compressed data out of a text. None: there is no secret in it, or it is none."""
        target = BytesIO()
        try:
            if kind_of(data[:START_BYTES]) in (Kind.PLAIN, Kind.PICTURE):
                return None
            count = self.clean(Passage(BytesIO(data), target, "", depth + 1), search)
        except TooMuchError:
            raise
        except UnsearchableFileError:
            return None
        return target.getvalue() if count else None


def pieces_of(file: BinaryIO) -> Iterator[bytes]:
    """The rest of a file."""
    while piece := file.read(PIECE_BYTES):
        yield piece


def _check_that_json_stays(passage: Passage) -> None:
    if not is_json_file(passage.target) and is_json_file(passage.source):
        raise UnsearchableFileError(BROKEN)
    passage.target.seek(0, 2)


def _copy_picture(passage: Passage, search: Search) -> int:
    if Text(search).needs_cleaning(pieces_of(passage.source)):
        raise UnsearchableFileError("a picture has a secret beside its pixels")
    passage.source.seek(0)
    shutil.copyfileobj(passage.source, passage.target, PIECE_BYTES)
    return 0
