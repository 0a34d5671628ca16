"""Take secrets out of a run's file: what cannot be searched does not leave."""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from contract.agent_api import MAX_ARTIFACT_BYTES
from runners.kit.archives.bounds import Bounds
from runners.kit.archives.cleaner import Cleaner, pieces_of
from runners.kit.archives.contents import Passage
from runners.kit.archives.kinds import START_BYTES, Kind, is_json, kind_of
from runners.kit.archives.search import Search
from runners.kit.archives.unsearchable import NoTextError, UnsearchableFileError
from runners.kit.isolation.workspace import RunFile, open_plain
from runners.kit.secrets.sensitive import SENSITIVE_HEADERS

__all__ = ("HiddenFile", "NoTextError", "UnsearchableFileError", "hide_in_file")

_PICTURES: Final = frozenset({"screenshot", "video"})
_USUAL: Final = Bounds()


class HiddenFile(NamedTuple):
    """A file without secrets."""

    file: RunFile
    replacements: int
    shows_secret: bool = False
    """A trace tells that a page showed a secret: so may the pictures of its run."""
    shows_found: bool = False
    """A page showed one that no mask knew, as a header's value, which nobody had called secret."""
    left_out: tuple[str, ...] = ()
    """What of the files in it does not leave with it, and why, for the reader."""


def hide_in_file(  # noqa: PLR0913 - of one file
    file: RunFile,
    secrets: tuple[str, ...],
    *,
    typed: tuple[str, ...] = (),
    out_of_sight: tuple[str, ...] = (),
    bounds: Bounds = _USUAL,
    header_names: frozenset[str] = SENSITIVE_HEADERS,
) -> HiddenFile:
    """Hide secrets in the file itself; the file as it is now, and how many there were.

    `typed`: those of the secrets that were typed letter by letter. `out_of_sight`: those that no
    script of the run was given, so that pictures have no masks for them.
    `header_names`: of headers whose values are secret whatever they are, in lower case; they go
    without any secret as well.

    Raises:
        UnsearchableFileError: a secret could be in it and not be found.
        OSError: it cannot be read or written.
    """
    with open_plain(file.path) as source:
        if not secrets and not _may_hold_headers(file, source):
            return HiddenFile(_described(file), 0)
        if secrets:
            _check_searchable(file, source)
        cleaner = Cleaner(folder=file.path.parent, bounds=bounds)
        search = Search(secrets, typed=typed, out_of_sight=out_of_sight, header_names=header_names)
        count = _replace(file, source, cleaner, search)
    left_out = tuple(f"{many} x {what}" for what, many in cleaner.left_out.items())
    shows = (cleaner.shows_secret, cleaner.shows_found)
    return HiddenFile(_described(file), count, *shows, left_out)


def _replace(file: RunFile, source: BinaryIO, cleaner: Cleaner, search: Search) -> int:
    """Put the clean file in its place; how many secrets there were."""
    # A new file for certain: a name that could be guessed might be a link already.
    handle, unfinished = tempfile.mkstemp(dir=file.path.parent)
    try:
        with os.fdopen(handle, "wb+") as target:
            count = cleaner.clean(Passage(source, target, file.artifact.name), search)
        # Never in place: the name may be one of several of the same file.
        Path(unfinished).replace(file.path)
    finally:
        Path(unfinished).unlink(missing_ok=True)
    return count


def _check_searchable(file: RunFile, source: BinaryIO) -> None:
    size = os.fstat(source.fileno()).st_size
    if size > MAX_ARTIFACT_BYTES:
        raise UnsearchableFileError(f"it has more than {MAX_ARTIFACT_BYTES} bytes")
    kind = kind_of(source.read(START_BYTES), file.artifact.name)
    source.seek(0)
    if kind is Kind.PICTURE and file.artifact.kind not in _PICTURES:
        raise UnsearchableFileError("it is a picture that is not called one")
    if kind is Kind.PLAIN and not _is_text(source):
        raise NoTextError("only text in UTF-8 and archives can be searched for secrets")


def _may_hold_headers(file: RunFile, source: BinaryIO) -> bool:
    """Whether it is a trace, a HAR or the like: their headers are secret where nothing else is."""
    start = source.read(START_BYTES)
    source.seek(0)
    try:
        kind = kind_of(start, file.artifact.name)
    except UnsearchableFileError:
        return False
    return is_json(start) if kind is Kind.PLAIN else kind is not Kind.PICTURE


def _is_text(source: BinaryIO) -> bool:
    """Other encodings, and data of no known kind, hide a secret from the search."""
    end = b""
    for piece in pieces_of(source):
        whole, end = end + piece, b""
        if b"\0" in whole:
            return False
        try:
            whole.decode()
        except UnicodeDecodeError as problem:
            if len(whole) - problem.start > 3:
                return False
            end = whole[problem.start :]
    source.seek(0)
    return not end


def _described(file: RunFile) -> RunFile:
    with open_plain(file.path) as opened:
        digest = hashlib.file_digest(opened, hashlib.sha256)
        size_bytes = opened.tell()
    artifact = msgspec.structs.replace(
        file.artifact, size_bytes=size_bytes, sha256=digest.hexdigest()
    )
    return RunFile(file.path, artifact)
