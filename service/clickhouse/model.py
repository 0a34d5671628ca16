"""What reads final results, wherever they are kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from service.http.errors import ApiError
from service.results.model import Finished


class FinalResults(Protocol):
    """Final results in which somebody looked at the target; windows are in ms, ends exclusive."""

    def list_finals(
        self, check_ids: Sequence[str], *, window: tuple[int, int], with_bodies: bool
    ) -> Iterator[Finished]:
        """Those of a window, by check and time."""

    def count_finals(self, check_ids: Sequence[str], *, window: tuple[int, int]) -> int:
        """How many `list_finals` has."""


class ArchiveError(ApiError):
    """503: the store with the copies does not answer, or not as it should."""

    status = 503

    def __init__(self, reason: str) -> None:
        super().__init__("ClickHouse failed; try again.", headers={"retry-after": "1"})
        self.reason = reason
        """What an operator is told: short, and without secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyState:
    """How copying stands."""

    is_up: bool
    """Whether the store took what it was sent last."""
    hours_waiting: int
    """How many hours of checks are still to be copied."""
    rows: int = 0
    """How many results have been copied since the last report."""
