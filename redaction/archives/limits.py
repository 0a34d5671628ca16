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
    """Of one file with all that it holds."""

    unpacked_bytes: int = 2 << 30
    """All members together, those of nested archives too."""
    ratio: int = 400
    """How many times its packed size a long member may unpack to."""
    members: int = 50_000
    """In one archive."""
    directory_bytes: int = 16 << 20
    """What the list of an archive's members may take; it is held in memory."""
    depth: int = 4
    """How many archives may be inside each other."""


class Budget:
    """What is left of the bounds."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._left_bytes = bounds.unpacked_bytes
        self._lock = threading.Lock()
        """What lies in texts is unpacked in threads."""

    def spend(self, size_bytes: int) -> None:
        """So much was unpacked.

        Raises:
            TooMuchError: it is too much.
        """
        with self._lock:
            self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            raise TooMuchError(f"it unpacks to over {self.bounds.unpacked_bytes} bytes")

    def check_ratio(self, packed_bytes: int, unpacked_bytes: int) -> None:
        """Whether a member is as long as its packed size lets expect.

        Raises:
            TooMuchError: it is not; it may have been made to fill memory or disk.
        """
        if unpacked_bytes > max(_RATIO_COUNTS_FROM_BYTES, packed_bytes * self.bounds.ratio):
            raise TooMuchError(f"a member unpacks to over {self.bounds.ratio} times its size")

    def check_depth(self, depth: int) -> None:
        """Whether an archive may be so deep inside others.

        Raises:
            TooMuchError: it may not.
        """
        if depth > self.bounds.depth:
            raise TooMuchError(f"it holds archives more than {self.bounds.depth} levels deep")


Item = TypeVar("Item")
Made = TypeVar("Made")

THREADS: Final = 2
"""Two blocks are searched at once: more of them would take memory, and processors of checks."""

MOST_HELD: Final = 2 * THREADS
"""Items at once. With fewer no work is waiting while the one who hands it out is busy."""


def each_with(
    work: Callable[[Item], Made], items: Iterable[Item]
) -> Generator[tuple[Item, Made], None, None]:
    """Each item with what the work makes of it, in order."""
    under_way: deque[tuple[Item, Future[Made]]] = deque()
    with ThreadPoolExecutor(THREADS) as threads:
        for item in items:
            under_way.append((item, threads.submit(work, item)))
            if len(under_way) >= MOST_HELD:
                first, made = under_way.popleft()
                yield first, made.result()
        for item, made in under_way:
            yield item, made.result()


class UnsearchableFileError(Exception):
    """A secret could be in the file and not be found; the text says why."""


class TooMuchError(UnsearchableFileError):
    """To search it would take more than one file may."""


class NoTextError(UnsearchableFileError):
    """The file is neither text nor an archive: it could leave if there were no secrets."""
