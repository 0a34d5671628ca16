"""`python -m service`: the control plane, and with arguments its commands."""

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final


def main(arguments: Sequence[str] = ()) -> int:
    """Carry a command out, or without one read the settings and serve; the exit code."""
    # Keys, scripts and what runs brought back are kept here: it is for the owner alone.
    os.umask(0o077)
    if arguments:
        from service.cli import run  # noqa: PLC0415 - serving needs none of it

        return run(arguments)
    with loading():
        from service.serving import serve_until_stopped  # noqa: PLC0415 - loaded with the collector off
    return serve_until_stopped()


_OPTIONAL: Final = ("rich", "aiodns")
"""structlog takes rich for tracebacks in colour, aiohttp takes aiodns for names, both only if they
can be imported; the service writes plain ones, and asks the system for names."""


@contextmanager
def loading() -> Iterator[None]:
    """For imports. What they make stays: to look through it for garbage is a third of a start."""
    # None makes the import fail as if the library were not installed.
    for name in _OPTIONAL:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
