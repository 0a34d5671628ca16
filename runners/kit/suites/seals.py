"""Finds kept packages that somebody changed, where scripts run as the user who keeps them."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from runners.kit.isolation.workspace import open_plain

_BITS: Final = stat.S_IXUSR


class Seals:
    """What each entry held when it was kept: in memory, which no script can reach.

    For worker threads. What was kept before this agent started is not known to be whole.
    """

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}
        """By the entry's name."""

    def note(self, entry: Path, seal: bytes) -> None:
        """Believe this entry from now on; forget those that are no more."""
        there = set(os.listdir(entry.parent))  # noqa: PTH208 - names are all that is needed
        kept = {name: one for name, one in self._known.items() if name in there}
        self._known = {**kept, entry.name: seal}

    def is_whole(self, entry: Path, modules: Path) -> bool:
        """Whether the entry holds what it held when it was kept; it blocks."""
        known = self._known.get(entry.name)
        try:
            return known is not None and known == seal_of(modules)
        except OSError:  # what cannot be read any more was changed
            return False


def seal_of(modules: Path) -> bytes:
    """A digest of all names, kinds and contents below a folder; it blocks.

    Raises:
        OSError: something cannot be read.
    """
    digest = hashlib.blake2b()
    for path in _below(modules):
        about = path.lstat()
        name = os.fsencode(path.relative_to(modules))
        digest.update(b"%d %s\0%o\0" % (len(name), name, stat.S_IFMT(about.st_mode)))
        if stat.S_ISLNK(about.st_mode):
            digest.update(os.fsencode(path.readlink()) + b"\0")
        elif stat.S_ISREG(about.st_mode):
            digest.update(b"%o\0" % (about.st_mode & _BITS))
            with open_plain(path) as file:
                digest.update(hashlib.file_digest(file, hashlib.blake2b).digest())
    return digest.digest()


def _below(folder: Path) -> Iterator[Path]:
    """All paths at any depth, always in the same order."""
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        found = sorted(place.iterdir())
        yield from found
        waiting += [path for path in found if path.is_dir() and not path.is_symlink()]
