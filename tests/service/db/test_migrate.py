import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from service.db.engine import Database
from service.db.migrate import (
    HEAD,
    SCRIPTS,
    NewerSchemaError,
    migrate,
    revision_of,
    upgrade,
)
from service.db.postgresql import open_postgresql
from service.db.sqlite import open_sqlite
from service.db.tables.metadata import metadata
from tests.servers.postgresql import PostgresServer

ROOT = Path(__file__).parents[3]
_POSTGRESQL_SCHEMA = text(
    "SELECT table_name, column_name, data_type, is_nullable, column_default"
    " FROM information_schema.columns WHERE table_schema = current_schema()"
    " UNION ALL SELECT tablename, indexname, indexdef, NULL, NULL"
    " FROM pg_indexes WHERE schemaname = current_schema()"
    " UNION ALL SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), NULL, NULL"
    " FROM pg_constraint WHERE connamespace = current_schema()::regnamespace"
)
_OUTER_COMMA = re.compile(r",(?![^(]*\))")


@pytest.fixture(params=["sqlite", "postgresql"])
def make_empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Database]]:
    """Opens a new database each time, which has no table."""
    if request.param == "sqlite":
        numbers = count()
        yield lambda: open_sqlite(tmp_path / f"{next(numbers)}.db")
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    with ExitStack() as stack:
        yield lambda: open_postgresql(stack.enter_context(server.database()))


@pytest.fixture
async def empty(make_empty: Callable[[], Database]) -> AsyncIterator[Database]:
    opened = make_empty()
    yield opened
    await opened.close()


async def test_the_migrations_make_the_schema_of_the_page(empty: Database) -> None:
    await empty.write(from_the_first_revision)

    def differences(connection: Connection) -> list[object]:
        names = {**metadata.tables, "alembic_version": None}

        def is_ours(_item: object, name: str | None, kind: str, *_: object) -> bool:
            return kind != "table" or name in names  # partitions are in none

        options = {"compare_type": True, "include_object": is_ours}
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, metadata))

    assert await empty.read(differences) == []


async def test_a_new_database_is_what_the_migrations_make_of_an_empty_one(
    empty: Database, make_empty: Callable[[], Database]
) -> None:
    """In SQL: Alembic compares neither partial indexes nor constraints nor WITHOUT ROWID."""
    await empty.write(from_the_first_revision)
    new = make_empty()
    await new.write(migrate)
    migrated, made = [await one.read(parts_of_schema) for one in (empty, new)]
    revisions = [await one.read(revision_of) for one in (empty, new)]
    await new.close()
    assert migrated == made
    assert revisions == [HEAD, HEAD]


async def test_an_older_database_goes_through_the_revisions_that_it_lacks(empty: Database) -> None:
    def reach_an_older_one(connection: Connection) -> None:
        config = Config()
        config.set_main_option("script_location", str(SCRIPTS))
        config.attributes["connection"] = connection
        command.upgrade(config, "0007")

    await empty.write(reach_an_older_one)
    assert await empty.write(migrate)
    assert await empty.read(revision_of) == HEAD
    tables = await empty.read(lambda c: set(inspect(c).get_table_names()))
    assert metadata.tables.keys() <= tables


async def test_an_upgrade_takes_as_long_as_it_takes_and_nothing_else_does(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limit(connection: Connection) -> str:
        return str(connection.execute(text("SHOW statement_timeout")).scalar_one())

    seen: list[str] = []
    monkeypatch.setattr(
        command, "upgrade", lambda config, _: seen.append(limit(config.attributes["connection"]))
    )
    with postgres.database() as url:
        database = open_postgresql(url)
        await database.write(from_the_first_revision)
        after = await database.write(limit)
        await database.close()
    assert (seen, after) == (["0"], "30s")


def from_the_first_revision(connection: Connection) -> None:
    upgrade(connection, None)


def parts_of_schema(connection: Connection) -> dict[str, object]:
    """Of each table and index: its head, its columns and constraints in any order, its options."""
    if connection.dialect.name == "postgresql":
        return {str(row[:2]): row[2:] for row in connection.execute(_POSTGRESQL_SCHEMA)}
    schema = text(
        "SELECT name, lower(replace(sql, '\"', '')) FROM sqlite_schema WHERE sql NOT NULL"
    )
    return {name: _parts("".join(sql.split())) for name, sql in connection.execute(schema)}


def _parts(sql: str) -> tuple[str, list[str], str]:
    head, _, rest = sql.partition("(")
    inner, _, options = rest.rpartition(")")
    return head, sorted(_OUTER_COMMA.split(inner)), options


def test_the_newest_revision_is_the_one_that_a_start_looks_for() -> None:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    assert ScriptDirectory.from_config(config).get_heads() == [HEAD]


async def test_a_second_start_has_nothing_to_do(empty: Database) -> None:
    await empty.write(migrate)
    assert not await empty.write(migrate)
    assert await empty.read(revision_of) == HEAD


async def test_a_database_of_a_newer_service_is_refused_and_left_alone(empty: Database) -> None:
    await empty.write(migrate)
    await empty.write(lambda c: c.execute(text("UPDATE alembic_version SET version_num = '9999'")))
    with pytest.raises(NewerSchemaError, match="9999"):
        await empty.write(migrate)
    assert await empty.read(revision_of) == "9999"


async def test_alembic_is_not_imported_when_nothing_is_due(tmp_path: Path) -> None:
    made = open_sqlite(tmp_path / "service.db")
    await made.write(migrate)
    await made.close()
    script = (
        "import sys\n"
        "from sqlalchemy import create_engine\n"
        "from service.db.migrate import migrate\n"
        f"with create_engine('sqlite:///{tmp_path / 'service.db'}').connect() as c:\n"
        "    assert not migrate(c)\n"
        "print('alembic' in sys.modules)\n"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await child.communicate()
    assert said == b"False\n"
