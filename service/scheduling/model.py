"""The schedule's values."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often a check runs, and where in its period."""

    period_ms: int
    phase_ms: int


class DueTimes(NamedTuple):
    """Due times of a check that passed without a run, in a row."""

    first_ms: int
    last_ms: int
    number: int


class Ticked(NamedTuple):
    """What a tick did."""

    checks: int
    """How many checks it handled."""
    has_more: bool
    """More checks may be due."""
    skipped: int = 0
    """How many due times had passed, for which it recorded missed runs."""
    away_ms: int = 0
    """How long ago the oldest of them was due."""


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
    waits_for_ping: int
    """Not 0: a heartbeat that was never pinged, which nobody need look at."""
