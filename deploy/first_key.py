"""Creates the key that a new service and its agents share, once: first_key.py FILE."""  # noqa: INP001 - a script of the images

import os
import sys
from pathlib import Path

from service.accounts.keys import LOCATION_PREFIX, make_raw_key


def main(file: Path) -> None:
    """Write a key that only the owner can read; an existing one stays."""
    if file.exists():
        return
    os.umask(0o077)
    # Atomic: a start that is interrupted here must not leave half a key.
    unfinished = file.with_suffix(".new")
    unfinished.write_text(make_raw_key(LOCATION_PREFIX), encoding="utf-8")
    unfinished.replace(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
