"""JSON lines that stay valid after secrets are hidden in them."""

import io
import json
import mmap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

import msgspec

from redaction.compiled import Pattern, compile_re2

BROKEN: Final = "removing a secret made of JSON syntax would make it invalid JSON"
"""Why a file does not leave."""
_MOST_LOOSE_BYTES: Final = 8 << 20
"""What is read as viewers do is built in memory."""
_NOTHING: Final = b"{}"
_LINE: Final = msgspec.json.Decoder(msgspec.Raw)


def with_valid_lines(before: bytes, after: bytes) -> bytes:
    """A changed block with an empty object for each line that a change made no JSON."""
    if after == before:
        return after
    broken = {line for line in _changed(before, after) if not _is_json(line)}
    known = set(before.split(b"\n")) if broken else set()
    broken -= known
    if not broken or not all(_is_json(line) for line in known if line):
        return after
    return b"\n".join(_NOTHING if line in broken else line for line in after.split(b"\n"))


def _changed(before: bytes, after: bytes) -> list[bytes]:
    """The lines from the first to the last that are others now."""
    shorter = min(len(before), len(after))
    same = _most(lambda least, most: before[least:most] == after[least:most], shorter)
    start = after.rfind(b"\n", 0, same) + 1
    same = _most(lambda least, most: _end(before, least, most) == _end(after, least, most), shorter)
    end = after.find(b"\n", max(start, len(after) - same))
    return after[start : end if end >= 0 else len(after)].split(b"\n")


def _end(text: bytes, least: int, most: int) -> bytes:
    return text[len(text) - most : len(text) - least]


def _most(are_alike: Callable[[int, int], bool], limit: int) -> int:
    """How many bytes are alike, of which each is looked at twice at most."""
    least = 0
    while least < limit:
        middle = (least + limit + 1) // 2
        if are_alike(least, middle):
            least = middle
        else:
            limit = middle - 1
    return least


def is_json_file(file: BinaryIO) -> bool:
    """Whether all of a file is JSON, or each of its lines is."""
    with _mapped(file) as content:
        return _is_json(content) or all(map(_is_json, _lines(content)))


@contextmanager
def _mapped(file: BinaryIO) -> Iterator[memoryview]:
    """Its content, which takes no memory but that of the disk's cache where it has a disk."""
    file.flush()
    if isinstance(file, io.BytesIO):
        yield memoryview(file.getvalue())
    elif file.seek(0, io.SEEK_END) == 0:
        yield memoryview(b"")
    else:
        with (
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
            memoryview(mapped) as content,
        ):
            yield content


def _lines(content: memoryview) -> Iterator[memoryview]:
    """Those with anything in them."""
    at, whole = 0, content.obj
    while at < len(content):
        end = whole.find(b"\n", at) if isinstance(whole, mmap.mmap | bytes) else -1
        end = end if end >= 0 else len(content)
        if end > at:
            yield content[at:end]
        at = end + 1


def _is_json(line: bytes | memoryview) -> bool:
    try:
        _LINE.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return len(line) <= _MOST_LOOSE_BYTES and _is_loosely_json(bytes(line))
    return True


def _is_loosely_json(line: bytes) -> bool:
    r"""Whether viewers read it all the same, as half of the pair `\ud83d\ude00`."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


_IN_PLACE: Final = b"0"


class Numbers:
    """Knows the secrets that are written as a number is."""

    def __init__(self, secrets: Iterable[str]) -> None:
        wanted = [secret for secret in secrets if secret.isascii() and secret.isdigit()]
        self.hint = "|".join(wanted)
        """What is there whenever such a number is, as an expression."""
        self._pattern = _compile(wanted) if wanted else None

    def hide(self, block: bytes) -> tuple[bytes, int]:
        """The JSON with other numbers in their place, and how many those were."""
        if self._pattern is None:
            return block, 0
        out, at, count = [], 0, 0
        match = self._pattern.search(block)
        while match is not None:
            out += [block[at : match.start(1)], _IN_PLACE]
            at, count = match.end(1), count + 1
            match = self._pattern.search(block, at)  # the comma behind is before the next, too
        return (b"".join((*out, block[at:])), count) if count else (block, 0)


def _compile(wanted: list[str]) -> Pattern:
    digits = "|".join(wanted)
    source = rf"[:\[,]\s*(-?[0-9.]*(?:{digits})[0-9.eE+-]*)(?:\s|[,\]}}]|$)"
    return compile_re2(source.encode())
