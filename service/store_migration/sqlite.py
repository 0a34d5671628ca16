"""An SQLite file that rows are read from or written to."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event

from service.store_migration.model import Row, changed_source, interrupted
from service.store_migration.rows import counted_columns, find_greatest

_PATIENCE_S: Final = 20.0
_COUNTERS: Final = "SELECT name, seq FROM sqlite_sequence WHERE seq > 0"
_COUNTING: Final = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'"
)


class SqliteStore:
    """A file with the schema of the service, or one that is not there yet."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.name = str(file)
        self.engine = _engine(file)

    def require_unused(self) -> None:
        """Do nothing: whoever moves the database holds the lock beside it."""

    def make_days(self, days_ms: Sequence[int]) -> None:
        """Do nothing: a file has no partitions."""

    def write(self, table: Table, rows: Sequence[Row]) -> None:
        """Add rows in one transaction.

        Raises:
            MigrationError: the file cannot be written.
        """
        names = ", ".join(f'"{column.name}"' for column in table.columns)
        marks = ", ".join("?" for _ in table.columns)
        # All names are those of our schema.
        statement = f'INSERT INTO "{table.name}" ({names}) VALUES ({marks})'  # noqa: S608
        try:
            with self._transaction() as connection:
                connection.executemany(statement, rows)
        except sqlite3.OperationalError as problem:
            raise interrupted(self.name, problem) from None
        except sqlite3.IntegrityError as problem:
            raise changed_source(self.name, f"the table {table.name}") from problem

    def read_counters(self) -> Mapping[str, int]:
        """The number that each table gave out last."""
        greatest = {
            name: find_greatest(self.engine, name, column)
            for name, column in counted_columns().items()
        }
        with closing(self._open()) as connection:
            given = dict(connection.execute(_COUNTERS))
        both = {name: max(number, given.get(name, 0)) for name, number in greatest.items()}
        return {name: number for name, number in both.items() if number}

    def set_counters(self, counters: Mapping[str, int]) -> None:
        """Go on counting after these numbers, in tables that must not give one out again."""
        with self._transaction() as connection:
            counting = {name for (name,) in connection.execute(_COUNTING)}
            chosen = [one for one in counters.items() if one[0] in counting]
            connection.execute("DELETE FROM sqlite_sequence")
            connection.executemany("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", chosen)

    def optimize(self) -> None:
        """Bring the log into the file."""
        with closing(self._open()) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._file, timeout=_PATIENCE_S)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with closing(self._open()) as connection, connection:
            yield connection


def _engine(file: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(file)),
        connect_args={"isolation_level": None, "timeout": _PATIENCE_S},
        hide_parameters=True,  # a failed statement may have a secret
    )
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", _begin)
    return engine


def _set_pragmas(connection: sqlite3.Connection, _record: object) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")
