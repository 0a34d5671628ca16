"""Time that passes at once: what an hour would do is written into the service's books.

A test that waited for a lease to end would need a short lease, and a short lease ends by itself
on a machine that stands still for a moment.
"""

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Final

_LOCK_S: Final = 60.0


def let_leases_run_out(database: Path) -> None:
    """Whatever is leased now is found lost, or forgiven when the service starts."""
    _change(database, "UPDATE job SET lease_until_ms = 1 WHERE state = 1")


def let_leases_last(database: Path) -> None:
    """Whatever is leased now is so for an hour, however long an agent takes to start."""
    until_ms = time.time_ns() // 1_000_000 + 3_600_000
    _change(database, f"UPDATE job SET lease_until_ms = {until_ms} WHERE state = 1")


def make_due(database: Path) -> None:
    """The next run of every check is due now."""
    now_ms = time.time_ns() // 1_000_000
    _change(database, f"UPDATE schedule SET next_run_ms = {now_ms}")


def move_plans_back(database: Path, *, by_ms: int) -> None:
    """Every check's next run was due so much earlier."""
    _change(database, f"UPDATE schedule SET next_run_ms = next_run_ms - {by_ms}")


def pauses_in(folder: Path) -> list[tuple[int, int]]:
    """When no tick came for long, Unix time in ms; `quick_service` wrote it down."""
    file = folder / "pauses"
    lines = file.read_text().splitlines() if file.exists() else []
    return [(int(began), int(ended)) for began, ended in map(str.split, lines)]


def _change(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database, timeout=_LOCK_S, isolation_level=None)) as file:
        file.execute(statement)
