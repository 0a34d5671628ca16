"""Names that are the hash of a member's content: of what was hidden they would tell."""

import re
from collections.abc import Iterable
from typing import Any, Final

import re2

_MEMORY_BYTES: Final = 32 << 20
_HASH: Final = re.compile(r"(?:^|/)([0-9a-f]{40})(?:\.[^/]*)?$")


def is_by_hash(name: str) -> bool:
    """Whether a member may be called by its content's hash."""
    return _HASH.search(name) is not None


class ResourceNames:
    """Which hashes became which."""

    def __init__(self) -> None:
        self._new: dict[bytes, bytes] = {}
        self._pattern: Any = None
        """Finds the hashes that are no more. None: they are not all known yet."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was renamed."""
        return not self._new

    def renamed(self, name: str, *, was: str, is_now: str) -> str:
        """What to call a member whose content had one hash and has another now.

        A name that holds another hash stays: sources are called by the hash of their path.
        """
        found = _HASH.search(name)
        if found is None or found[1] != was or was == is_now:
            return name
        self._new[was.encode()], self._pattern = is_now.encode(), None
        return name[: found.start(1)] + is_now + name[found.end(1) :]

    def update(self, block: bytes) -> tuple[bytes, int]:
        """The text with the names as they are now, and how many it had."""
        if not self._new:
            return block, 0
        self._pattern = self._pattern or _any_of(self._new)
        out, at, count = [], 0, 0
        for match in self._pattern.finditer(block):
            out += [block[at : match.start()], self._new[match.group(0)]]
            at, count = match.end(), count + 1
        return (b"".join((*out, block[at:])), count) if count else (block, 0)


def _any_of(hashes: Iterable[bytes]) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY_BYTES
    return re2.compile(b"|".join(hashes), options)
