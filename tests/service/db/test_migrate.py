import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from service.db.engine import Database
from service.db.migrate import HEAD, SCRIPTS, NewerSchemaError, migrate, revision_of
from service.db.sqlite import open_sqlite
from service.db.tables import metadata

ROOT = Path(__file__).parents[3]


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncIterator[Database]:
    opened = open_sqlite(tmp_path / "service.db")
    yield opened
    await opened.close()


async def test_the_migrations_make_the_schema_of_the_page(empty: Database) -> None:
    assert await empty.write(migrate)

    def differences(connection: Connection) -> list[object]:
        options = {"compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, metadata))

    assert await empty.read(differences) == []


async def test_the_migrations_make_the_same_sql_as_the_page(
    empty: Database, tmp_path: Path
) -> None:
    """Partial indexes and WITHOUT ROWID, which Alembic does not compare."""
    schema = text(
        "SELECT name, lower(replace(sql, '\"', '')) FROM sqlite_schema "
        "WHERE sql IS NOT NULL AND name NOT IN ('alembic_version', 'sqlite_sequence')"
    )
    await empty.write(migrate)
    page = open_sqlite(tmp_path / "page.db")
    await page.write(metadata.create_all)
    migrated, made = [
        {name: sorted("".join(sql.split()).split(",")) for name, sql in rows}
        for rows in [await one.read(lambda c: c.execute(schema).all()) for one in (empty, page)]
    ]
    await page.close()
    assert migrated.keys() == made.keys()
    for name in made:
        assert ("withoutrowid" in str(made[name])) == ("withoutrowid" in str(migrated[name])), name
        assert ("autoincrement" in str(made[name])) == ("autoincrement" in str(migrated[name]))
        if name.startswith(("ix_", "uq_")):
            assert migrated[name] == made[name]


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
