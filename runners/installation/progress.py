"""Reports every few seconds how far an installation is."""

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
    """How many packages of a runtime are installed."""

    done: int
    total: int


def say(sentence: str) -> None:
    """Print one line to stderr; stdout is for the command's result."""
    sys.stderr.write(f"setup: {sentence}\n")
    sys.stderr.flush()


@contextmanager
def progress(counts: Callable[[], dict[str, Count]], every_s: float = _EVERY_S) -> Iterator[None]:
    """Report the counts by name while the block runs.

    Complete ones are left out.
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
