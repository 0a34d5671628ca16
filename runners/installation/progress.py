"""Says every few seconds how far the work is, by a count that only grows."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

_EVERY_S: Final = 10


@dataclass(frozen=True, slots=True)
class Count:
    """How many of all are there."""

    done: int
    total: int


def say(sentence: str) -> None:
    """One line for a person; what the command is asked for goes elsewhere."""
    sys.stderr.write(f"setup: {sentence}\n")
    sys.stderr.flush()


@contextmanager
def progress(counts: Callable[[], dict[str, Count]], every_s: float = _EVERY_S) -> Iterator[None]:
    """While the block runs, say the counts by their names.

    What is counted to its end is left out.
    """
    began, ended = time.monotonic(), threading.Event()

    def tell() -> None:
        while not ended.wait(every_s):
            parts = [
                f"{name} has {count.done} of {count.total} packages"
                for name, count in counts().items()
                if count.done < count.total
            ]
            doing = ", ".join(parts) or "compiling ahead"
            say(f"{time.monotonic() - began:.0f} s: {doing}")

    teller = threading.Thread(target=tell, name="setup-progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
