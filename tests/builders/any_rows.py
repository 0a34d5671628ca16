"""Rows of every table with the values that engines tell apart: for databases that are moved."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Table,
)
from sqlalchemy.types import TypeEngine

from service.db.tables.metadata import metadata

ROWS: Final = 7
_TEXTS: Final = (
    "plain",
    "",
    "tab\t newline\n return\r backslash\\ \\N \\.",
    "quotes ' \" `",
    "Ærøskøbing 東京 🕯 e\u0301 \u202e",
    "\x01\x7f\ufffd\uffff\U0010ffff",
    "1e5",
)
_DOCUMENTS: Final[tuple[Any, ...]] = (
    {},
    [],
    {"b": 1, "a": [None, True, 1.5, 2**53 + 1, -(2**63)], "": {"": ""}},
    {"nul": "\0", "half": "\ud83d", "line": "\u2028"},
    {text: text for text in _TEXTS},
    ["x" * 100_000],
    {"numbers": [1e-300, 0.1, 123456789012345678901234567890]},
)
_BYTES: Final = (b"", b"\0", bytes(range(256)), b"\\x00", b"\xff\xfe", "ü".encode(), b"x" * 70_000)
_LONG: Final = (0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63), 1_790_000_000_000)
_INTEGERS: Final = (0, 1, -1, 2**31 - 1, -(2**31), 7, 42)
_SMALL: Final = (0, 1, 2**15 - 1, -(2**15), 2, 3, 4)
_FLOATS: Final = (0.0, 0.1, 1.0, -2.5, 1e308, 5e-324, 1 / 3)


def fill_every_table(connection: Connection) -> None:
    """Insert rows into each table; columns that may be empty are so in some of them."""
    for table in metadata.sorted_tables:
        connection.execute(table.insert(), list(rows_of(table)))


def add_results(connection: Connection, *, count: int) -> None:
    """So many more results, whose ids begin with `more-` and their number."""
    table = metadata.tables["result"]
    usual = next(rows_of(table))
    rows = [{**usual, "id": f"more-{number:06}", "check_id": "m"} for number in range(count)]
    connection.execute(table.insert(), rows)


def rows_of(table: Table) -> Iterator[dict[str, Any]]:
    """Rows that fit each other: what a column refers to is in the other table's rows."""
    for number in range(ROWS):
        yield {column.key: _value(column, number) for column in table.columns}


def _value(column: Column[Any], number: int) -> Any:
    if column.nullable and number % 3 == 2:
        return None
    if column.foreign_keys:
        [parent] = column.foreign_keys
        return _value(parent.column, number)
    if column is column.table.autoincrement_column:
        return 10**12 + number
    # The types that are narrower come first: they are subtypes of others.
    values = next(values for kind, values in _VALUES.items() if isinstance(column.type, kind))
    value = values[number]
    return f"{number}{value}" if values is _TEXTS and _is_unique(column) else value


_VALUES: Final[Mapping[type[TypeEngine[Any]], Sequence[Any]]] = {
    Boolean: [number % 2 == 1 for number in range(ROWS)],
    SmallInteger: _SMALL,
    BigInteger: _LONG,
    Integer: _INTEGERS,
    Float: _FLOATS,
    LargeBinary: _BYTES,
    JSON: _DOCUMENTS,
    String: _TEXTS,
}


def _is_unique(column: Column[Any]) -> bool:
    return column.primary_key or any(
        column.name in names for names in _unique_columns(column.table)
    )


def _unique_columns(table: Table) -> Iterator[set[str]]:
    for index in table.indexes:
        if index.unique:
            yield {column.name for column in index.columns}
    for constraint in table.constraints:
        if getattr(constraint, "columns", None) is not None:
            yield {column.name for column in constraint.columns}
