"""Where the runtimes of this installation are, and where new ones go.

Runs of scripts have users of their own, who may not enter each folder of this machine: root's home,
say. What root installs there goes into a place of the system instead.
"""

import os
import stat
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).resolve().parents[1] / "harness/runtimes"
"""The sources of runtimes: a folder for each, with its lock file, named by the runtime's id."""
WARMER: Final = Path(__file__).resolve().with_name("warm.cjs")
READY: Final = "ready"
"""The file of a runtime that is written last: it holds the fingerprint."""
_LAYOUT: Final = 1
"""The version of a runtime's layout; raising it makes all of them install anew."""
_SYSTEM: Final = Path("/usr/local/lib/picket/runtimes")
_ROOT: Final = 0


def runtimes_folder() -> Path:
    """The folder that has runtimes of this release; where they would be installed if none has.

    The modes of folders may have changed since the installation. Where several folders have
    runtimes, root takes one that the users of runs can enter.
    """
    if (named := _named_folder()) is not None:
        return named
    found = [one for one in _possible_folders() if _has_runtimes(one)]
    if os.geteuid() == _ROOT:
        found.sort(key=others_may_enter, reverse=True)
    return found[0] if found else _new_folder()


def installation_folder() -> Path:
    """The folder that runtimes are installed in; it need not exist.

    It is the one that has runtimes already, unless root finds that other users cannot enter it.
    """
    found = runtimes_folder()
    if _named_folder() is not None or os.geteuid() != _ROOT or others_may_enter(found):
        return found
    return _new_folder()


def is_current(folder: Path, runtime_id: str) -> bool:
    """Whether the runtime is installed, complete, and the one of this release."""
    with suppress(OSError):
        return (folder / runtime_id / READY).read_text().strip() == fingerprint(runtime_id)
    return False


def others_may_enter(folder: Path) -> bool:
    """Whether a user who is neither the owner nor of the group may pass to what is in it."""
    path = folder.resolve()
    there = (one for one in (path, *path.parents) if one.exists())
    return all(one.stat().st_mode & stat.S_IXOTH for one in there)


def runtime_ids() -> list[str]:
    """The ids of this release's runtimes, the oldest first."""
    return sorted(one.name for one in SOURCES.iterdir() if one.is_dir())


def fingerprint(runtime_id: str) -> str:
    """Hash all that a runtime is made of, and how it is laid out."""
    source = SOURCES / runtime_id
    files = (*sorted(one for one in source.rglob("*") if one.is_file()), WARMER)
    seen = sha256(f"{_LAYOUT}\n".encode())
    for file in files:
        content = file.read_bytes()
        seen.update(f"{file.name} {len(content)}\n".encode())
        seen.update(content)
    return seen.hexdigest()


def release_key() -> str:
    """Name the folder of this release's runtimes, where several releases share one."""
    return sha256("".join(map(fingerprint, runtime_ids())).encode()).hexdigest()[:12]


def _new_folder() -> Path:
    """`.tools/runtimes` in a working copy, `runtimes` in the environment otherwise.

    For root, where other users cannot enter that: a folder of the system. For a user who may not
    write there: one in the own home.
    """
    own = _own_folder()
    if os.geteuid() == _ROOT:
        return own if others_may_enter(own) else _system_folder()
    return own if own.is_dir() or _can_create(own) else _home_folder()


def _named_folder() -> Path | None:
    """What PICKET_RUNTIMES names. None: nothing."""
    return Path(named) if (named := os.environ.get("PICKET_RUNTIMES")) else None


def _possible_folders() -> tuple[Path, ...]:
    if os.geteuid() == _ROOT:
        return _own_folder(), _system_folder()
    return _own_folder(), _system_folder(), _home_folder()


def _has_runtimes(folder: Path) -> bool:
    return any(is_current(folder, one) for one in runtime_ids())


def _system_folder() -> Path:
    return _SYSTEM / release_key()


def _home_folder() -> Path:
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")  # noqa: PTH111 - a user without a home is no error
    return Path(data) / "picket/runtimes" / release_key()


def _own_folder() -> Path:
    root = Path(__file__).resolve().parents[2]
    if (root / "pyproject.toml").is_file():
        return root / ".tools/runtimes"
    return Path(sys.prefix) / "runtimes"


def _can_create(folder: Path) -> bool:
    nearest = next(one for one in folder.parents if one.exists())
    return os.access(nearest, os.W_OK)
