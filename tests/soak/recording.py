"""All that agents said to their service, on disk, by the connection that they said it on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

LIMIT_BYTES: Final = 2 << 30


class Recording:
    """Give its `hear` to a proxy."""

    def __init__(self, folder: Path, *, limit_bytes: int = LIMIT_BYTES) -> None:
        folder.mkdir()
        self._folder = folder
        self._left_bytes = limit_bytes
        self.size_bytes = 0
        self.missed_bytes = 0
        """What there was no room for: nobody can say that it is clean."""

    def hear(self, connection: int, said: bytes) -> None:
        """A piece of what an agent said, as it came."""
        if len(said) > self._left_bytes:
            self._left_bytes = 0
            self.missed_bytes += len(said)
            return
        self._left_bytes -= len(said)
        self.size_bytes += len(said)
        with (self._folder / f"{connection:08}").open("ab") as file:
            file.write(said)

    def connections(self) -> Iterator[bytes]:
        """What was said on each, from the first to the last."""
        for path in sorted(self._folder.iterdir()):
            yield path.read_bytes()
