"""Counts what became of every run, from the service's database."""

import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

Books = sqlite3.Connection | psycopg.Connection[Any]


@contextmanager
def open_books(database: Path | str) -> Iterator[Books]:
    """Read the database of services that run or are dead: a file, or an address of PostgreSQL."""
    if isinstance(database, Path):
        with closing(sqlite3.connect(database, timeout=60, isolation_level=None)) as file:
            yield file
        return
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The books of one database at one moment."""

    runs: int
    """Every run that was ever queued: ids are counted up and none is used twice."""
    open_runs: int
    """Queued or leased."""
    leased: int
    unqueued: int
    """Checks whose next run is due, and not in the queue yet."""
    statuses: dict[str, int]
    """FINAL results by status."""
    causes: dict[str, int]
    """FINAL results that judge no target, by cause."""
    doubled: list[int]
    """Runs with more than one FINAL result."""
    lost: list[int]
    """Runs that are not open and have no FINAL result."""
    attempts: int
    """Results that a retry replaced."""
    unlike_attempts: list[int]
    """Runs of which not each attempt before the newest one has one ATTEMPT result."""
    unmarked: list[int]
    """Runs whose FINAL result and whose mark of being settled do not belong together."""
    late: int
    """Results kept as history."""
    late_of_nothing: int
    """Late results of a run that never got a FINAL result."""
    most_claims: int
    """How often the run was claimed that was claimed most often before its FINAL result."""
    open_sessions: int
    triggered: int
    """Runs that were asked for by sessions."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing is going on."""
        return self.open_runs == 0 and self.unqueued == 0

    @property
    def missed(self) -> int:
        return self.statuses.get("MISSED", 0)

    @property
    def final(self) -> int:
        """Runs that somebody looked at."""
        return sum(self.statuses.values()) - self.missed

    def line(self) -> str:
        """All of it, for a person."""
        return (
            f"runs={self.runs} final={self.final} missed={self.missed} open={self.open_runs} "
            f"duplicate={len(self.doubled)} lost={len(self.lost)} late={self.late} "
            f"attempts={self.attempts} unlike_attempts={self.unlike_attempts} "
            f"statuses={self.statuses} causes={self.causes}"
        )

    def assert_balanced(self, *, triggered: int) -> None:
        """Every run ended once, all by a look at the target or as missed, and none is forgotten."""
        assert self.open_runs == 0, self.line()
        assert self.lost == [], self.line()
        assert self.doubled == [], self.line()
        assert self.unmarked == [], self.line()
        assert self.unlike_attempts == [], self.line()
        assert self.runs == self.final + self.missed, self.line()
        assert self.triggered == triggered, self.line()
        assert self.open_sessions == 0, self.line()
        assert self.late_of_nothing == 0, self.line()


def read_ledger(database: Path | str) -> Ledger:
    """Read the books at one moment.

    PostgreSQL leaves out numbers, so that no run counts as lost; look for holes in the schedules.
    """
    with open_books(database) as books:
        if isinstance(database, Path):
            books.execute("BEGIN")
            counted = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'job'"
            return _ledger(books, range(1, _one(books, counted) + 1))
        books.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        known = "SELECT run_id FROM run_final UNION SELECT id FROM job ORDER BY 1"
        return _ledger(books, _column(books, known))


def _ledger(file: Books, ids: Sequence[int]) -> Ledger:
    """`ids`: of all runs that there ever were."""
    runs = len(ids)
    final = _column(file, "SELECT run_id FROM result WHERE result_type = 'FINAL'")
    marked = _column(file, "SELECT run_id FROM run_final")
    still_open = set(_column(file, "SELECT id FROM job"))
    seen = Counter(final)
    return Ledger(
        runs=runs,
        open_runs=len(still_open),
        leased=_one(file, "SELECT count(*) FROM job WHERE state = 1"),
        unqueued=_one(file, f"SELECT count(*) FROM schedule WHERE next_run_ms <= {_now_ms()}"),
        statuses=_counts(file, "status", "result_type = 'FINAL'"),
        causes=_counts(file, "cause", "result_type = 'FINAL' AND cause IS NOT NULL"),
        doubled=[run for run, times in seen.items() if times > 1],
        lost=sorted(set(ids) - set(seen) - still_open),
        attempts=_one(file, "SELECT count(*) FROM result WHERE result_type = 'ATTEMPT'"),
        unlike_attempts=_unlike_attempts(file),
        unmarked=sorted((set(seen) ^ set(marked)) | (set(seen) & still_open)),
        late=_one(file, "SELECT count(*) FROM late_result"),
        late_of_nothing=_one(
            file,
            "SELECT count(*) FROM late_result WHERE run_id NOT IN (SELECT run_id FROM run_final)",
        ),
        most_claims=_one(file, "SELECT coalesce(max(fence & 15), 0) FROM run_final"),
        open_sessions=_one(file, "SELECT count(*) FROM session WHERE stopped_ms IS NULL"),
        triggered=_one(
            file,
            "SELECT count(*) FROM result WHERE result_type = 'FINAL' AND source = 'TRIGGER_API'",
        ),
    )


def _unlike_attempts(file: Books) -> list[int]:
    """The first attempt is 1; the newest is that of the FINAL result, or the one that is open."""
    attempts: dict[int, list[int]] = defaultdict(list)
    for run, attempt in file.execute(
        "SELECT run_id, attempt FROM result WHERE result_type = 'ATTEMPT'"
    ):
        attempts[run].append(attempt)
    newest = dict(
        file.execute(
            "SELECT run_id, attempt FROM result WHERE result_type = 'FINAL'"
            " UNION SELECT id, attempt FROM job"
        ).fetchall()
    )
    runs = sorted(newest.keys() | attempts.keys())
    return [run for run in runs if sorted(attempts[run]) != [*range(1, newest.get(run, 0))]]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _one(file: Books, query: str) -> int:
    found: int = file.execute(query).fetchone()[0]
    return found


def _column(file: Books, query: str) -> list[Any]:
    return [row[0] for row in file.execute(query)]


def _counts(file: Books, column: str, where: str) -> dict[str, int]:
    rows = file.execute(f"SELECT {column}, count(*) FROM result WHERE {where} GROUP BY 1")
    return dict(rows.fetchall())
