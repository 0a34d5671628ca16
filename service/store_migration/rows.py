"""What is alike on both engines: the tables, reading rows in order, and the revision."""

from collections.abc import Generator
from typing import Any, Final

from sqlalchemy import JSON, Engine, Select, Table, Text, cast, inspect, select, tuple_

from service.db import migrate
from service.db.partitions.days import DAY_MS
from service.db.tables.metadata import metadata
from service.store_migration.model import Row

TABLES: Final[tuple[Table, ...]] = tuple(metadata.sorted_tables)
"""Every table; those that others refer to come first."""
_ROWS_AT_ONCE: Final = 100


def read_rows(engine: Engine, table: Table, *, after: Row | None = None) -> Generator[Row]:
    """The rows of a table in the order of its primary key, from one snapshot.

    `after`: the primary key of the row before the first one. None: from the beginning.
    """
    key = list(table.primary_key.columns)
    columns = [
        cast(column, Text).label(column.name) if isinstance(column.type, JSON) else column
        for column in table.columns
    ]
    query: Select[Any] = select(*columns).order_by(*key)
    if after is not None:
        query = query.where(tuple_(*key) > tuple_(*after))
    with engine.connect() as connection:
        streaming = connection.execution_options(yield_per=_ROWS_AT_ONCE)
        for row in streaming.execute(query):
            yield tuple(row)


def find_last_key(engine: Engine, table: Table) -> Row | None:
    """The greatest primary key. None: the table is empty."""
    key = list(table.primary_key.columns)
    query = select(*key).order_by(*(column.desc() for column in key)).limit(1)
    with engine.connect() as connection:
        found = connection.execute(query).one_or_none()
    return None if found is None else tuple(found)


def counted_columns() -> dict[str, str]:
    """The column that the database counts up, by table."""
    counted = ((table.name, table.autoincrement_column) for table in TABLES)
    return {name: column.name for name, column in counted if column is not None}


def find_greatest(engine: Engine, table_name: str, column: str) -> int:
    """The greatest number in a column; 0 in an empty table."""
    numbers = metadata.tables[table_name].columns[column]
    with engine.connect() as connection:
        query = select(numbers).order_by(numbers.desc()).limit(1)
        return connection.execute(query).scalar_one_or_none() or 0


def list_days_of_results(engine: Engine) -> list[int]:
    """When each day begins on which a run with a result began, in ms since 1970."""
    times = metadata.tables["result"].columns["ts"]
    with engine.connect() as connection:
        return list(connection.execute(select(times - times % DAY_MS).distinct()).scalars())


def has_tables(engine: Engine) -> bool:
    """Whether there is anything in the database."""
    with engine.connect() as connection:
        return bool(inspect(connection).get_table_names())


def find_revision(engine: Engine) -> str | None:
    """The revision of the schema. None: it has none."""
    with engine.connect() as connection:
        return migrate.revision_of(connection)


def create_schema(engine: Engine) -> None:
    """Make all tables; services refuse the database until `finish`."""
    with engine.begin() as connection:
        migrate.create_unfinished(connection)


def finish(engine: Engine) -> None:
    """Let services use the database."""
    with engine.begin() as connection:
        migrate.finish(connection)
