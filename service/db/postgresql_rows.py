"""Many rows in one statement of PostgreSQL, and many statements in one trip to it.

For one row each, most of the cost is the statement; for short statements it is the trip.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection

from service.db.engine import shared_of
from service.db.postgresql_faults import driver

_encode: Final = msgspec.json.Encoder().encode


def copy_rows(
    connection: Connection, statement: str, types: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Store new rows by `COPY … FROM STDIN (FORMAT BINARY)`; types as PostgreSQL names them."""
    with driver(connection).cursor().copy(statement.encode()) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)


def json_rows(names: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Rows as `json_to_recordset` reads them, by the names of its columns."""
    return _encode([dict(zip(names, row, strict=True)) for row in rows]).decode()


def execute_later(connection: Connection, statement: str, parameters: Sequence[object]) -> None:
    """Execute a statement whose outcome nobody reads: in a brief change, together with its commit.

    What reads its rows in the same transaction does so by `fetch_rows`.
    """
    if shared := shared_of(connection):
        shared.later.append((statement, parameters))
    else:
        driver(connection).execute(statement.encode(), parameters)


def execute_delayed(connection: Connection) -> None:
    """Execute what `execute_later` has kept so far."""
    if (shared := shared_of(connection)) is None:
        return
    for statement, parameters in shared.later:
        driver(connection).execute(statement.encode(), parameters)
    shared.later.clear()


def fetch_rows(
    connection: Connection, statement: str, parameters: Sequence[object]
) -> list[tuple[Any, ...]]:
    """The rows of a query that sees what `execute_later` has kept so far, in one trip with it."""
    postgres, shared = driver(connection), shared_of(connection)
    if shared is None or not shared.later:
        return postgres.execute(statement.encode(), parameters).fetchall()
    with postgres.pipeline():
        execute_delayed(connection)
        return postgres.execute(statement.encode(), parameters).fetchall()
