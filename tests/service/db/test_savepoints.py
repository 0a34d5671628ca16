"""Parts of a change that fail, alone and in groups of changes."""

import asyncio
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from service.db.engine import Database, DatabaseFullError, Line, announce
from service.db.savepoints import attempt
from service.db.sqlite import open_sqlite

CHANGES = 5


def add(connection: Connection, name: str) -> None:
    connection.execute(text("INSERT INTO note VALUES (:name)"), {"name": name})
    announce(connection, name)


def add_and_fail(connection: Connection) -> None:
    add(connection, "lost")
    raise LookupError("spoiled")


def change(connection: Connection) -> Exception | None:
    add(connection, "before")
    problem = attempt(connection, lambda: add_and_fail(connection))
    assert attempt(connection, lambda: add(connection, "after")) is None
    return problem


async def names(database: Database) -> list[str]:
    return await database.read(lambda c: list(c.execute(text("SELECT name FROM note")).scalars()))


@pytest.mark.parametrize("brief", [None, Line.RESULTS])
@pytest.mark.parametrize("changes", [1, CHANGES])
async def test_of_a_part_that_fails_nothing_is_left_and_the_rest_stands(
    tmp_path: Path, changes: int, *, brief: Line | None
) -> None:
    database, told = open_sqlite(tmp_path / "notes.db"), list[str]()
    database.listen(str, told.append)
    await database.write(lambda c: c.execute(text("CREATE TABLE note (name TEXT)")))
    problems = await asyncio.gather(*(database.write(change, brief=brief) for _ in range(changes)))
    assert [type(one) for one in problems] == [LookupError] * changes
    assert await names(database) == told == ["before", "after"] * changes
    await database.close()


async def test_a_disk_that_is_full_is_no_fault_of_the_part(tmp_path: Path) -> None:
    def fill(connection: Connection) -> None:
        problem = sqlite3.OperationalError("database or disk is full")
        problem.sqlite_errorcode = sqlite3.SQLITE_FULL
        add(connection, "lost")
        raise problem

    database = open_sqlite(tmp_path / "notes.db")
    await database.write(lambda c: c.execute(text("CREATE TABLE note (name TEXT)")))
    with pytest.raises(DatabaseFullError):
        await database.write(lambda c: attempt(c, lambda: fill(c)))
    assert await names(database) == []
    await database.close()
