"""What a stretch of bytes reads once it is decoded, and from where each decoded byte came."""

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    """What a covered place is written in; the highest of several that overlap decides."""

    TEXT = 0
    WIDE = 1
    HEX = 2
    BASE64 = 3


class View(NamedTuple):
    """A decoded stretch."""

    content: bytes
    place: Callable[[int, int], tuple[int, int]]
    """Where the bytes from the first to the last (itself included) came from."""
    kind: Kind
