"""Where the runtimes of this installation are: installing and finding ask the same function.

Runs of scripts have users of their own, who may not enter each folder of this machine: root's home,
say. What root installs there goes into a place of the system instead.
"""

import os
import stat
import sys
from hashlib import sha256
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).resolve().parents[1] / "harness/runtimes"
"""What each runtime is made of: a folder with its lock file, named by the runtime's id."""
WARMER: Final = Path(__file__).resolve().with_name("warm.cjs")
_LAYOUT: Final = 1
"""Count it up when a runtime is laid out otherwise: all are installed anew then."""
_SYSTEM: Final = Path("/usr/local/lib/picket/runtimes")
_ROOT: Final = 0


def runtimes_folder() -> Path:
    """The folder of the runtimes for whoever asks; it need not exist.

    `.tools/runtimes` in a working copy, `runtimes` in the environment otherwise. For root, where
    other users cannot enter that: a folder of the system. For a user who may not write there, and
    finds nothing: one in the own home.
    """
    own = _own_folder()
    if os.geteuid() == _ROOT:
        return own if others_may_enter(own) else _SYSTEM / release_key()
    if own.is_dir() or _may_make(own):
        return own
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")  # noqa: PTH111 - a user without a home is no error
    return Path(data) / "picket/runtimes" / release_key()


def others_may_enter(folder: Path) -> bool:
    """Whether a user who is neither the owner nor of the group may pass to what is in it."""
    path = folder.resolve()
    there = (one for one in (path, *path.parents) if one.exists())
    return all(one.stat().st_mode & stat.S_IXOTH for one in there)


def runtime_ids() -> list[str]:
    """All that this release has, the oldest first."""
    return sorted(one.name for one in SOURCES.iterdir() if one.is_dir())


def fingerprint(runtime_id: str) -> str:
    """Changes with whatever a runtime is made of, and with how it is made."""
    source = SOURCES / runtime_id
    files = (*sorted(one for one in source.rglob("*") if one.is_file()), WARMER)
    seen = sha256(f"{_LAYOUT}\n".encode())
    for file in files:
        content = file.read_bytes()
        seen.update(f"{file.name} {len(content)}\n".encode())
        seen.update(content)
    return seen.hexdigest()


def release_key() -> str:
    """Keeps the runtimes of several releases apart where they share a folder."""
    return sha256("".join(map(fingerprint, runtime_ids())).encode()).hexdigest()[:12]


def _own_folder() -> Path:
    root = Path(__file__).resolve().parents[2]
    if (root / "pyproject.toml").is_file():
        return root / ".tools/runtimes"
    return Path(sys.prefix) / "runtimes"


def _may_make(folder: Path) -> bool:
    nearest = next(one for one in folder.parents if one.exists())
    return os.access(nearest, os.W_OK)
