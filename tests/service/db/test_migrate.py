import asyncio
import re
import sys
from collections.abc import AsyncIterator
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
from service.db.sqlite import open_sqlite
from service.db.tables.metadata import metadata

ROOT = Path(__file__).parents[3]
_OUTER_COMMA = re.compile(r",(?![^(]*\))")


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncIterator[Database]:
    opened = open_sqlite(tmp_path / "service.db")
    yield opened
    await opened.close()


async def test_the_migrations_make_the_schema_of_the_page(empty: Database) -> None:
    await empty.write(from_the_first_revision)

    def differences(connection: Connection) -> list[object]:
        options = {"compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, metadata))

    assert await empty.read(differences) == []


async def test_a_new_database_is_what_the_migrations_make_of_an_empty_one(
    empty: Database, tmp_path: Path
) -> None:
    """In SQL: Alembic compares neither partial indexes nor constraints nor WITHOUT ROWID."""
    await empty.write(from_the_first_revision)
    new = open_sqlite(tmp_path / "new.db")
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


def from_the_first_revision(connection: Connection) -> None:
    upgrade(connection, None)


def parts_of_schema(connection: Connection) -> dict[str, tuple[str, list[str], str]]:
    """Of each table and index: its head, its columns and constraints in any order, its options."""
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


async def test_alembic_is_not_imported_when_nothing_is_due(empty: Database, tmp_path: Path) -> None:
    await empty.write(migrate)
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
