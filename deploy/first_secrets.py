"""Creates the secrets that services and agents share, once: `first_secrets.py FOLDER NAME…`.

What a service of before keeps in SERVICE_DATA_DIR is copied, so that it can move to PostgreSQL.
"""  # noqa: INP001 - a script of the images

import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from service.accounts.keys import LOCATION_PREFIX, make_raw_key
from service.vault.master_keys import new_key

_PASSWORD: Final = "database-password"  # noqa: S105 - a name
_ADDRESS: Final = "postgresql://picket:{password}@postgresql/picket"
_NEW: Final[Mapping[str, Callable[[Path], str]]] = {
    "location": lambda _: make_raw_key(LOCATION_PREFIX),
    "key-pepper": lambda _: _kept("key-pepper") or secrets.token_urlsafe(32),
    "master-key": lambda _: _kept("master-key") or new_key(),
    _PASSWORD: lambda _: secrets.token_urlsafe(32),
    "database-url": lambda folder: _ADDRESS.format(password=(folder / _PASSWORD).read_text()),
}


def main(folder: Path, names: Sequence[str]) -> None:
    """Write each to a file that only its owner can read; existing ones stay.

    The server of the database has another user, and reads its password by the owner's group.
    """
    os.umask(0o077)
    for name in names:
        file = folder / name
        if file.exists():
            continue
        # Atomic: a start that is interrupted here must not leave half a key.
        unfinished = folder / f"{name}.new"
        unfinished.write_text(_NEW[name](folder), encoding="utf-8")
        if name == _PASSWORD:
            unfinished.chmod(0o640)
            folder.chmod(0o710)
        unfinished.replace(file)


def _kept(name: str) -> str | None:
    file = Path(os.environ.get("SERVICE_DATA_DIR", "")) / name
    return file.read_text(encoding="utf-8").strip() if file.is_file() else None


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
