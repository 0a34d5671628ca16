"""`python -m service`: the control plane, and with arguments its commands."""

import os
import sys
from collections.abc import Sequence

from service import lean


def main(arguments: Sequence[str] = ()) -> int:
    """Carry a command out, or without one read the settings and serve; the exit code."""
    # Keys, scripts and what runs brought back are kept here: it is for the owner alone.
    os.umask(0o077)
    if arguments:
        from service.command_line import run  # noqa: PLC0415 - serving needs none of it

        return run(arguments)
    with lean.loading():
        from service.serving import serve_until_told  # noqa: PLC0415 - what must be loaded leanly
    return serve_until_told()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
