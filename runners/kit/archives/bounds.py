"""What the cleaning of one file may take: bounds that honest files do not meet."""

import threading
from dataclasses import dataclass

from runners.kit.archives.unsearchable import TooMuchError

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
