"""The process that hides secrets in a run's files and then scans them.

It reads its order from standard input, since other users can see arguments and environments, and
writes a verdict on each file as soon as it has one.
"""

import hashlib
import os
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Final, NamedTuple

import msgspec

from contract.agent_api import MAX_ARTIFACT_BYTES
from contract.result import Artifact
from contract.wire import decode, encode
from redaction.archives.cleaner import Cleaner, pieces_of
from redaction.archives.compressed import START_BYTES, Kind, detect_kind, is_json
from redaction.archives.limits import Bounds, NoTextError, UnsearchableFileError
from redaction.archives.search import CleaningTask, Search
from redaction.archives.zip import UNSEARCHABLE, remove_members
from redaction.clean import (
    FileVerdict,
    Leak,
    Passed,
    UnscannableError,
    UnscannableMembersError,
    VerdictMessage,
    Withheld,
)
from redaction.files import PICTURES, CleaningOrder
from redaction.policy import SENSITIVE_HEADERS, with_certain_prefixes
from redaction.scanner.scan import scan_file
from sandbox.system_calls import give_back_memory, hide_memory
from sandbox.workspace import RunFile, ScreenshotReview, open_regular_file

_PICTURES: Final = frozenset({"screenshot", "video"})
_USUAL: Final = Bounds()


class HiddenFile(NamedTuple):
    """A file without secrets."""

    file: RunFile
    replacements: int
    shows_secret: bool = False
    """Whether a trace shows that a page displayed a secret, which pictures may show too."""
    shows_found: bool = False
    """Whether the page displayed a secret that no mask knew, such as a header's value."""
    left_out: tuple[str, ...] = ()
    """Members that were left out and why, for people."""


def hide_in_file(  # noqa: PLR0913 - of one file
    file: RunFile,
    secrets: tuple[str, ...],
    *,
    typed: tuple[str, ...] = (),
    out_of_sight: tuple[str, ...] = (),
    bounds: Bounds = _USUAL,
    header_names: frozenset[str] = SENSITIVE_HEADERS,
    withholds_pictures: bool = False,
    names: Mapping[str, str] = MappingProxyType({}),
) -> HiddenFile:
    """Hide secrets in the file itself; the file as it is now, and how many there were.

    `typed`: those of the secrets that were typed letter by letter. `out_of_sight`: those that no
    script of the run was given, so that pictures have no masks for them.
    `header_names`: of headers whose values are secret whatever they are, in lower case; they go
    without any secret as well. `withholds_pictures`: whether pictures in it are left out, unless
    they are those of a trace.

    Raises:
        UnsearchableFileError: a secret could be in it and not be found.
        OSError: it cannot be read or written.
    """
    with open_regular_file(file.path) as source:
        if not secrets and not _may_hold_headers(file, source):
            return HiddenFile(_describe(file), 0)
        if secrets:
            _check_searchable(file, source)
        cleaner = Cleaner(folder=file.path.parent, bounds=bounds)
        search = Search(
            secrets,
            typed=typed,
            out_of_sight=out_of_sight,
            header_names=header_names,
            withholds_pictures=withholds_pictures,
            names=names,
        )
        count = _replace(file, source, cleaner, search)
    left_out = tuple(f"{many} x {what}" for what, many in cleaner.left_out.items())
    shows = (cleaner.shows_secret, cleaner.shows_found)
    return HiddenFile(_describe(file), count, *shows, left_out)


def _replace(file: RunFile, source: BinaryIO, cleaner: Cleaner, search: Search) -> int:
    """Replace the file by its clean copy and return how many secrets it had."""
    with _replacing(file.path) as target:
        return cleaner.clean(CleaningTask(source, target, file.artifact.name), search)


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file that takes the place of another at the end of the block, unless it fails."""
    # A new file for certain: a name that could be guessed might be a link already.
    handle, unfinished = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb+") as target:
            yield target
        # Never in place: the name may be one of several of the same file.
        Path(unfinished).replace(path)
    finally:
        Path(unfinished).unlink(missing_ok=True)


def _check_searchable(file: RunFile, source: BinaryIO) -> None:
    size = os.fstat(source.fileno()).st_size
    if size > MAX_ARTIFACT_BYTES:
        raise UnsearchableFileError(f"it has more than {MAX_ARTIFACT_BYTES} bytes")
    kind = detect_kind(source.read(START_BYTES), file.artifact.name)
    source.seek(0)
    if kind is Kind.PICTURE and file.artifact.kind not in _PICTURES:
        raise UnsearchableFileError("it is a picture, but its name does not show that")
    if kind is Kind.PLAIN and not _is_text(source):
        raise NoTextError("only UTF-8 text and archives can be searched for secrets")


def _may_hold_headers(file: RunFile, source: BinaryIO) -> bool:
    """Whether it may be a trace or a HAR, whose headers are secret even without other secrets."""
    start = source.read(START_BYTES)
    source.seek(0)
    try:
        kind = detect_kind(start, file.artifact.name)
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


def _describe(file: RunFile) -> RunFile:
    with open_regular_file(file.path) as opened:
        digest = hashlib.file_digest(opened, hashlib.sha256)
        size_bytes = opened.tell()
    artifact = msgspec.structs.replace(
        file.artifact, size_bytes=size_bytes, sha256=digest.hexdigest()
    )
    return RunFile(file.path, artifact)


_MAY_SHOW: Final = Withheld(
    because="it may show a secret, because a page of the run showed one", is_unsearchable=True
)
_NOTHING_TELLS: Final = Withheld(
    because="it may show a secret: the run knew secrets, and no trace shows what its pages had",
    is_unsearchable=True,
)
_LEAST_URGENT: Final = 19
TURN_S: Final = 0.001
"""The interpreter's switch interval, shorter than the 2 to 3 ms of searching one block."""
_OOM_SCORE: Final = "900"
_MEMORY_BYTES: Final = 3 << 30
"""The limit on address space: patterns of many secrets reserve much of it and use little."""


@dataclass(frozen=True, slots=True)
class _RunPages:
    """What a run's pages showed, as far as its files tell."""

    videos: int
    """How many videos the run has."""
    traces: int = 0
    """How many traces were read."""
    showed_known: bool = False
    """Whether a page showed a secret that the run knew, which masks cover."""
    showed_other: bool = False
    """Whether a page showed a secret that no mask knew, or one found only later."""

    def withhold_picture(
        self, review: ScreenshotReview, *, was_in_sight: bool, is_video: bool = False
    ) -> Withheld | None:
        """Why a picture is withheld. None: nothing speaks against it.

        With more videos than traces, one may be of pages that no trace shows.
        """
        if self.showed_other or (self.showed_known and review is not ScreenshotReview.MASKED):
            return _MAY_SHOW
        is_untold = not self.traces or (is_video and self.videos > self.traces)
        if was_in_sight and is_untold and review is ScreenshotReview.UNREVIEWED:
            return _NOTHING_TELLS
        return None

    def withholds_others(self, *, was_in_sight: bool) -> bool:
        """Whether pictures in other files than traces are left out; they have no masks."""
        unmasked = ScreenshotReview.UNREVIEWED
        return self.withhold_picture(unmasked, was_in_sight=was_in_sight) is not None

    def updated(self, artifact: Artifact, verdict: FileVerdict) -> "_RunPages":
        """Add what one more file shows."""
        if isinstance(verdict, Withheld):
            return replace(self, showed_other=self.showed_other or verdict.leak is not None)
        return replace(
            self,
            traces=self.traces + (artifact.kind == "trace"),
            showed_known=self.showed_known or verdict.shows_secret,
            showed_other=self.showed_other or verdict.shows_found,
        )


def main() -> None:
    """Make the files of an order clean, one verdict a line."""
    order = decode(sys.stdin.buffer.read(), CleaningOrder)
    _confine_process(order.limit_s)
    was_in_sight = len(order.out_of_sight) < len(order.secrets)
    sys.setswitchinterval(TURN_S)
    pages = _RunPages(videos=sum(file.artifact.kind == "video" for file in order.files))
    for file in order.files:
        verdict: FileVerdict | None = None
        if file.artifact.kind in PICTURES:
            verdict = pages.withhold_picture(
                file.review, was_in_sight=was_in_sight, is_video=file.artifact.kind == "video"
            )
        verdict = verdict or clean_and_scan(
            RunFile(Path(file.path), file.artifact),
            order.secrets,
            typed=order.typed,
            out_of_sight=order.out_of_sight,
            header_names=frozenset(order.header_names),
            withholds_pictures=pages.withholds_others(was_in_sight=was_in_sight),
            names=order.names,
        )
        pages = pages.updated(file.artifact, verdict)
        sys.stdout.buffer.write(encode(VerdictMessage(verdict=verdict)) + b"\n")
        sys.stdout.buffer.flush()


def clean_and_scan(  # noqa: PLR0913 - of one file
    file: RunFile,
    secrets: tuple[str, ...],
    *,
    typed: tuple[str, ...] = (),
    out_of_sight: tuple[str, ...] = (),
    header_names: frozenset[str] = SENSITIVE_HEADERS,
    withholds_pictures: bool = False,
    names: Mapping[str, str] = MappingProxyType({}),
) -> FileVerdict:
    """Hide a file's secrets, then scan it with the independent search; it blocks."""
    try:
        hidden = hide_in_file(
            file,
            secrets,
            typed=typed,
            out_of_sight=out_of_sight,
            header_names=header_names,
            withholds_pictures=withholds_pictures,
            names=names,
        )
        give_back_memory()  # expressions of 40 secrets had 50 MB, and the scan has its own
        hidden, leaks = _scan(hidden, with_certain_prefixes(secrets, typed))
    except (UnsearchableFileError, UnscannableError) as problem:
        is_no_text = isinstance(problem, NoTextError)
        return Withheld(because=str(problem), is_unsearchable=True, is_no_text=is_no_text)
    except OSError as problem:
        return Withheld(because=problem.strerror or "it cannot be read")
    return _withhold(leaks[0]) if leaks else _pass_message(hidden)


def _scan(hidden: HiddenFile, secrets: Iterable[str]) -> tuple[HiddenFile, tuple[Leak, ...]]:
    """Scan a file, without those members of an archive that cannot be scanned."""
    needles = tuple(secrets)
    try:
        return hidden, scan_file(hidden.file.path, needles)
    except UnscannableMembersError as problem:
        hidden = _without_members(hidden, problem.reasons)
    return hidden, scan_file(hidden.file.path, needles)


def _without_members(hidden: HiddenFile, reasons: Mapping[str, str]) -> HiddenFile:
    file = hidden.file
    with open_regular_file(file.path) as source, _replacing(file.path) as target:
        remove_members(source, target, reasons, _USUAL)
    counts = Counter(f"{UNSEARCHABLE}: {reason}" for reason in reasons.values())
    left_out = (*hidden.left_out, *(f"{many} x {what}" for what, many in counts.items()))
    return hidden._replace(file=_describe(file), left_out=left_out)


def _pass_message(hidden: HiddenFile) -> Passed:
    return Passed(
        artifact=hidden.file.artifact,
        replacements=hidden.replacements,
        shows_secret=hidden.shows_secret,
        shows_found=hidden.shows_found,
        left_out=hidden.left_out,
    )


def _withhold(leak: Leak) -> Withheld:
    return Withheld(because=f"secret found in {leak.kind} ({leak.place})", leak=leak.kind)


def _confine_process(limit_s: float) -> None:
    """Lower the process's priority, limit it, and hide its memory."""
    os.nice(_LEAST_URGENT)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    cpu_s = 2 * int(limit_s) + 1  # two threads search at once
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    with suppress(OSError):
        hide_memory()


if __name__ == "__main__":
    main()
