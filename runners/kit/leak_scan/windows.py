"""Look at a stream in windows that overlap, so that no secret lies between two of them."""

import re
from collections.abc import Callable
from typing import Final

from runners.kit.leak_scan.leak import ScanLimits
from runners.kit.leak_scan.needles import Needles
from runners.kit.leak_scan.typed import TypedTexts

_LEAST_OVERLAP_BYTES: Final = 8192
_GROWTH: Final = 48
"""So many times its length a secret takes in three encodings that lie on each other."""
_RUN_END: Final = re.compile(rb"[^A-Za-z0-9+/_\-=\\\r\n%]")
_LONG_RUN_BYTES: Final = 4096

Look = Callable[[bytes], bool]


class Windows:
    """Fed with pieces of a stream, it looks at each stretch once, and says where it found."""

    def __init__(self, needles: Needles, limits: ScanLimits, look: Look) -> None:
        least = max(_LEAST_OVERLAP_BYTES, needles.longest_bytes * _GROWTH)
        self._overlap_bytes = min(least, limits.run_bytes // 2)
        self._window_bytes = max(limits.window_bytes, 4 * self._overlap_bytes)
        self._most_bytes = max(limits.run_bytes, 2 * self._window_bytes)
        self._look = look
        self._typed = TypedTexts(tail_bytes=self._overlap_bytes)
        self._held = bytearray()
        self._known_bytes = 0
        """So much at the beginning of what is held was looked at."""
        self._at = 0
        """Where what is held begins in the stream."""

    def feed(self, content: bytes) -> int | None:
        """Look once there is enough. Gives where a secret is, roughly; None: none was found."""
        self._held += content
        while len(self._held) >= self._window_bytes:
            end = self._end_of_window()
            if end is None:
                return None
            if (place := self._look_at(end)) is not None:
                return place
        return None

    def close(self) -> int | None:
        """Look at what is left."""
        return self._look_at(len(self._held)) if len(self._held) > self._known_bytes else None

    def _end_of_window(self) -> int | None:
        """The window ends where no run of encoded bytes is cut. None: that is not known yet."""
        end = min(len(self._held), max(self._window_bytes, self._known_bytes + 1))
        run_from = end - _LONG_RUN_BYTES
        if _RUN_END.search(self._held, run_from, end) is not None:
            return end
        over = _RUN_END.search(self._held, end)
        if over is not None:
            return min(over.start(), self._most_bytes)
        return self._most_bytes if len(self._held) >= self._most_bytes else None

    def _look_at(self, end: int) -> int | None:
        window = bytes(self._held[:end])
        typed = self._typed.joined(window, known_bytes=self._known_bytes)
        if self._look(window) or (typed and self._look(typed)):
            return self._at + self._known_bytes
        kept = min(self._overlap_bytes, end)
        del self._held[: end - kept]
        self._at += end - kept
        self._known_bytes = kept
        return None
