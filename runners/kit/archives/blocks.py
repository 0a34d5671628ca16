"""Cuts text into blocks of bounded size where nothing is cut that belongs together."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

BLOCK_BYTES: Final = 1 << 18
LONGEST_BYTES: Final = 8 << 20
"""A line that is longer is cut anywhere."""
_COOKIES: Final = b'"cookies"'
_CLOSED: Final = re.compile(
    rb'"cookies"(?!\s*:\s*\[)|"cookies"\s*:\s*\[(?:[^"\]]|"(?:[^"\\]|\\.)*+")*+\]'
)


def in_blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks that end with a line, and not within an object of indented JSON."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size < BLOCK_BYTES:
            continue
        block = b"".join(held)
        end = _outside_cookies(block, _end_of_lines(block, size - len(piece)))
        if end == 0 and size < LONGEST_BYTES:
            continue
        yield block[: end or size]
        rest = block[end or size :]
        held, size = [rest], len(rest)
    if size:
        yield b"".join(held)


def _end_of_lines(text: bytes, known: int) -> int:
    """Behind the last object that ends a line, or else behind the last line. 0: there is none.

    `known`: so much of its beginning was looked through before.
    """
    end = text.rfind(b"}\n", known) + 1
    # No more than what follows is looked through.
    further = text.rfind(b"},\n", max(end, known)) + 1
    if further:
        return further + len(b",\n")
    return end + len(b"\n") if end else text.rfind(b"\n", known) + 1


def _outside_cookies(text: bytes, end: int) -> int:
    """That place, or before a list of cookies that it is in: all of these are hidden. 0: none."""
    if _COOKIES not in text:  # to look for them from the end takes longer
        return end
    begins = text.rfind(_COOKIES, 0, end)
    if begins < 0 or _CLOSED.match(text, begins, end) is not None:
        return end
    return text.rfind(b"\n", 0, begins) + 1
