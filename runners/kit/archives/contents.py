"""What archives need of whoever cleans the files in them."""

from dataclasses import dataclass
from typing import BinaryIO, Protocol

from runners.kit.archives.bounds import Budget
from runners.kit.archives.headers import HeaderHiding
from runners.kit.archives.search import Edit, Search


@dataclass(frozen=True, slots=True)
class Passage:
    """A file on its way to be clean."""

    source: BinaryIO
    target: BinaryIO
    name: str
    """What it is called where it lies."""
    depth: int = 1
    """How many files it is in, itself included."""


class Contents(Protocol):
    """Cleans files of any kind; there is one for each file that a run brings back."""

    budget: Budget

    def spool(self) -> BinaryIO:
        """A file for what a member unpacks to, gone once it is closed."""

    def clean(self, passage: Passage, search: Search) -> int:
        """Write the source without secrets to the target; how many there were."""

    def edits(
        self, search: Search, headers: HeaderHiding | None, *, depth: int
    ) -> tuple[Edit, ...]:
        """What is done to a text before it is searched. None: it is no JSON."""

    def note_shown(self, *, was_found: bool) -> None:
        """A trace tells that a page showed a secret; `was_found`: one of its own headers."""

    def leave_out(self, because: str) -> None:
        """A file of an archive does not leave with it."""
