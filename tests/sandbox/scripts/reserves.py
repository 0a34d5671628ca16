"""Reserves memory without using it, until there is no more."""

import mmap
import sys
import time

held = []
try:
    while True:
        held.append(mmap.mmap(-1, 100_000_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
except (OSError, MemoryError):
    time.sleep(2)  # so that it is looked at
    sys.exit(1)
