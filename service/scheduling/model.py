"""The schedule's values."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often a check runs, and where in its period."""

    period_ms: int
    phase_ms: int


class DueCheck(NamedTuple):
    """A check whose schedule says that a run is due."""

    check_id: str
    check_type: str
    lane: str
    run_parallel: bool
    period_ms: int
    phase_ms: int
    next_run_ms: int
    turn: int
