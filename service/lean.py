"""Loads the service's libraries undisturbed, and without what it does not use of them."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_OPTIONAL: Final = "rich"
"""structlog takes it for tracebacks in colour, only if it can be imported; the service writes plain
ones."""


@contextmanager
def loading() -> Iterator[None]:
    """For imports. What they make stays: to look through it for garbage is a third of a start."""
    # None makes the import fail as if the library were not installed.
    sys.modules.setdefault(_OPTIONAL, None)  # type: ignore[arg-type]
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
