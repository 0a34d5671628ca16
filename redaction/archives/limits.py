"""How much is searched at most, and what cannot be searched."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeVar

_RATIO_COUNTS_FROM_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much may be searched of one file and everything inside it."""

    unpacked_bytes: int = 2 << 30
    """Decompressed bytes of all members, including those of nested archives."""
    ratio: int = 400
    """How many times its compressed size a member over 64 MiB may decompress to."""
    members: int = 50_000
    """How many members one archive may have."""
    directory_bytes: int = 16 << 20
    """The size of an archive's central directory, which is held in memory."""
    depth: int = 4
    """How many archives may be inside each other."""


class Budget:
    """How many bytes of the bounds are left."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._left_bytes = bounds.unpacked_bytes
        self._lock = threading.Lock()
        """Data embedded in texts is decompressed in threads."""

    def spend(self, size_bytes: int) -> None:
        """Subtract what was decompressed.

        Raises:
            TooMuchError: it is too much.
        """
        with self._lock:
            self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            raise TooMuchError(f"it unpacks to over {self.bounds.unpacked_bytes} bytes")

    def check_ratio(self, packed_bytes: int, unpacked_bytes: int) -> None:
        """Check that a member is no decompression bomb.

        Raises:
            TooMuchError: it may have been made to fill memory or disk.
        """
        if unpacked_bytes > max(_RATIO_COUNTS_FROM_BYTES, packed_bytes * self.bounds.ratio):
            raise TooMuchError(f"a member unpacks to over {self.bounds.ratio} times its size")

    def check_depth(self, depth: int) -> None:
        """Check how deep an archive is nested.

        Raises:
            TooMuchError: it is nested too deep.
        """
        if depth > self.bounds.depth:
            raise TooMuchError(f"it holds archives more than {self.bounds.depth} levels deep")


Item = TypeVar("Item")
Made = TypeVar("Made")

THREADS: Final = 2
"""How many blocks are searched at once; more would take memory and CPU from checks."""

MAX_IN_PROGRESS: Final = 2 * THREADS
"""How many items are in progress; with fewer, threads idle while the caller is busy."""


def map_ahead(
    work: Callable[[Item], Made], items: Iterable[Item]
) -> Generator[tuple[Item, Made], None, None]:
    """Yield each item with its result, in order, while threads work ahead."""
    under_way: deque[tuple[Item, Future[Made]]] = deque()
    with ThreadPoolExecutor(THREADS) as threads:
        for item in items:
            under_way.append((item, threads.submit(work, item)))
            if len(under_way) >= MAX_IN_PROGRESS:
                first, made = under_way.popleft()
                yield first, made.result()
        for item, made in under_way:
            yield item, made.result()


class UnsearchableFileError(Exception):
    """A secret could be in the file and not be found; the text says why."""


class TooMuchError(UnsearchableFileError):
    """The file exceeds the bounds."""


class NoTextError(UnsearchableFileError):
    """The file is neither text nor an archive; it is sent only if the run has no secrets."""
