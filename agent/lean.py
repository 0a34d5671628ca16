"""Keeps the idle agent small: what its libraries load without need stays out of the process.

Must run before structlog and aiohttp are imported; where they are already, it changes nothing.
"""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_OPTIONAL: Final = ("rich", "aiodns")
"""structlog takes rich for tracebacks in colour, aiohttp takes aiodns for names, both only if they
can be imported. The agent uses neither: 4 MB."""
_ROOTS: Final = {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull}


def load_libraries() -> None:
    """Import the large libraries without what the agent does not use of them."""
    for name in _OPTIONAL:
        # None makes the import fail as if the library were not installed.
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]
    # The scanner imports it where there is something to open; aiohttp would ask services for it.
    with _without_roots(), _as_if_missing("brotli"):
        # aiohttp reads all roots into a context of its own at import; the agent brings its own
        # context wherever there is TLS: 2.5 MB.
        __import__("aiohttp")
    __import__("structlog")


@contextmanager
def undisturbed() -> Iterator[None]:
    """For imports. What they make stays: to look through it for garbage is a third of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _as_if_missing(name: str) -> Iterator[None]:
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


@contextmanager
def _without_roots() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _ROOTS}
    os.environ.update(_ROOTS)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
