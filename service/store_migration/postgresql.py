"""A PostgreSQL database that rows are read from or written to."""

from collections.abc import Mapping, Sequence
from typing import Final

import psycopg
from psycopg import sql
from sqlalchemy import Engine, Table, create_engine, make_url, text

from service.db.partitions import days
from service.db.postgresql import APPLICATION, require_usable
from service.store_migration.model import MigrationError, Row, changed_source, interrupted
from service.store_migration.rows import counted_columns

_OTHERS: Final = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name = :name"
)


class PostgresStore:
    """A database with the schema of the service, or an empty one."""

    def __init__(self, url: str) -> None:
        """Connect.

        Raises:
            DatabaseUnusableError: it cannot be reached, or is none that the service can use.
        """
        address = make_url(url)
        self.engine = _engine(url)
        self._address = address.set(drivername="postgresql").render_as_string(hide_password=False)
        self.name = f"{address.host or 'localhost'}/{address.database}"
        require_usable(self.engine)

    def require_unused(self) -> None:
        """Check that no service is connected.

        Raises:
            MigrationError: one is.
        """
        with self.engine.connect() as connection:
            connected = connection.execute(_OTHERS, {"name": APPLICATION}).scalar_one()
        if connected:
            raise MigrationError(f"a service uses the database {self.name}; stop it first")

    def make_days(self, days_ms: Sequence[int]) -> None:
        """Make the partitions for results of these days."""
        with self.engine.begin() as connection:
            days.create_past(connection, days_ms)

    def write(self, table: Table, rows: Sequence[Row]) -> None:
        """Add rows in one transaction.

        Raises:
            MigrationError: one has a NUL in a text, or broken JSON.
        """
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(table.name),
            sql.SQL(", ").join(sql.Identifier(column.name) for column in table.columns),
        )
        try:
            with (
                psycopg.connect(self._address) as connection,
                connection.cursor() as cursor,
                cursor.copy(statement) as copy,
            ):
                for row in rows:
                    copy.write_row(row)
        except psycopg.OperationalError as problem:
            raise interrupted(self.name, problem) from None
        except psycopg.IntegrityError as problem:
            raise changed_source(self.name, f"the table {table.name}") from problem
        except psycopg.DataError as problem:
            place = _find_nul(table, rows) or problem.diag.context or f"table {table.name}"
            reason = problem.diag.message_primary or str(problem)
            raise MigrationError(f"PostgreSQL cannot keep a value: {place}: {reason}") from problem

    def read_counters(self) -> Mapping[str, int]:
        """The number that each table gave out last."""
        found = {}
        with psycopg.connect(self._address) as connection:
            for name, column in counted_columns().items():
                sequence = _find_sequence(connection, name, column)
                query = sql.SQL("SELECT last_value, is_called FROM {}").format(sequence)
                row = connection.execute(query).fetchone()
                if row is not None and row[1]:
                    found[name] = int(row[0])
        return found

    def set_counters(self, counters: Mapping[str, int]) -> None:
        """Go on counting after these numbers."""
        columns = counted_columns()
        with psycopg.connect(self._address) as connection:
            for name, number in counters.items():
                connection.execute(
                    "SELECT setval(pg_get_serial_sequence(%s, %s), %s)",
                    (name, columns[name], number),
                )

    def optimize(self) -> None:
        """Have the planner know how much there is."""
        with psycopg.connect(self._address, autocommit=True) as connection:
            connection.execute("ANALYZE")


def _engine(url: str) -> Engine:
    return create_engine(
        make_url(url).set(drivername="postgresql+psycopg"),
        connect_args={"application_name": "picket migrate-store", "connect_timeout": 5},
        isolation_level="REPEATABLE READ",
        hide_parameters=True,  # a failed statement may have a secret
    )


def _find_sequence(
    connection: psycopg.Connection[tuple[object, ...]], table: str, column: str
) -> sql.Composable:
    [name] = connection.execute(
        "SELECT pg_get_serial_sequence(%s, %s)", (table, column)
    ).fetchone() or [""]
    return sql.Identifier(*str(name).split("."))


def _find_nul(table: Table, rows: Sequence[Row]) -> str | None:
    """Where a text has a NUL. None: none has."""
    for row in rows:
        for column, value in zip(table.columns, row, strict=True):
            if isinstance(value, str) and "\0" in value:
                return f"{table.name}.{column.name}"
    return None
