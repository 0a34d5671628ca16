"""How long things are kept."""

from dataclasses import dataclass
from typing import Final

DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Days; 0 means for ever."""

    results: int = 30
    rollups: int = 761
    """25 months."""
    files: int = 30
    late_results: int = 7
    alerts: int = 396
    """13 months."""


def limit_ms(days: int, *, now_ms: int) -> int | None:
    """What is older than that goes. None: nothing does."""
    return now_ms - days * DAY_MS if days else None
