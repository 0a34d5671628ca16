"""Cuts text into blocks of bounded size where nothing is cut that belongs together."""

from collections.abc import Iterable, Iterator
from typing import Final

BLOCK_BYTES: Final = 1 << 18
LONGEST_BYTES: Final = 8 << 20
"""A line that is longer is cut anywhere."""


def in_blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks that end with a line, and not within an object of indented JSON."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size < BLOCK_BYTES:
            continue
        end = _end_of_lines(piece)
        if end == 0 and size < LONGEST_BYTES:
            continue
        rest = piece[end or len(piece) :]
        held[-1] = piece[: end or len(piece)]
        yield b"".join(held)
        held, size = [rest], len(rest)
    if size:
        yield b"".join(held)


def _end_of_lines(text: bytes) -> int:
    """Behind the last object that ends a line, or else behind the last line. 0: there is none."""
    end = text.rfind(b"}\n") + 1
    further = text.rfind(b"},\n", end) + 1  # no more than what follows is looked through
    if further:
        return further + len(b",\n")
    return end + len(b"\n") if end else text.rfind(b"\n") + 1
