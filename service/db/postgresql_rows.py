"""Many rows in one statement of PostgreSQL: for one row each, most of the cost is the statement."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from sqlalchemy import Connection

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
