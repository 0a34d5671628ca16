"""What is freed is handed to the system, cycles included."""

import gc
import weakref
from pathlib import Path

import pytest

from sandbox.system_calls import LIBC, give_back_memory

PIECE_BYTES = 40_000
"""Less than what the C library takes from the system for itself alone."""
PIECES = 1_500


class Knot:
    """Refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.held = [b"x" * (PIECE_BYTES + number) for number in range(PIECES)]
        self.itself = self


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not hasattr(LIBC, "malloc_trim"), reason="this C library does so by itself")
def test_what_was_freed_is_given_back_though_something_behind_it_is_still_used() -> None:
    gc.disable()
    try:
        knot = Knot()
        behind = [b"x" * (PIECE_BYTES + number) for number in range(10)]
        seen, held_bytes = weakref.ref(knot), resident_bytes()
        del knot
        assert seen() is not None
        give_back_memory()
    finally:
        gc.enable()
    assert seen() is None
    assert resident_bytes() < held_bytes - PIECE_BYTES * PIECES // 2
    assert len(behind) == 10
