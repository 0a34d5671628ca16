"""`python -m runners.installation`: installs the runtimes alone, as images do."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from runners.installation.places import installation_folder, is_current, runtime_ids
from runners.installation.progress import say
from runners.installation.runtimes import InstallationError, install


def main(arguments: Sequence[str] | None = None) -> int:
    """Install what is not there, or not as it should be; 1 if that cannot be done."""
    parser = _parser()
    given = parser.parse_args(arguments)
    wanted, known = given.id or runtime_ids(), runtime_ids()
    if unknown := [one for one in wanted if one not in known]:
        parser.error(f"no runtime is called {', '.join(unknown)}; use {' or '.join(known)}")
    os.umask(0o022)
    try:
        install(given.folder, [one for one in wanted if not is_current(given.folder, one)])
    except InstallationError as problem:
        say(str(problem))
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m runners.installation", description=__doc__)
    parser.add_argument("--folder", type=Path, default=installation_folder(), help="where they go")
    parser.add_argument("id", nargs="*", help="of a runtime; none: all of them")
    return parser


if __name__ == "__main__":
    sys.exit(main())
