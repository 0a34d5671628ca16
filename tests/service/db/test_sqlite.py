import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError
from structlog.testing import capture_logs

from service.db import pending_changes
from service.db.engine import DatabaseBusyError, DatabaseFullError, Line, announce
from service.db.sqlite import SqliteDatabase, open_sqlite
from tests.builders.patience import LONG_S

INSERT = text("INSERT INTO note (id) VALUES (:id)")
COUNT = text("SELECT count(*) FROM note")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    opened = open_sqlite(tmp_path / "notes.db", busy_timeout_s=0.05, give_up_s=0.3)
    await opened.write(lambda c: c.execute(text("CREATE TABLE note (id INTEGER PRIMARY KEY)")))
    yield opened
    await opened.close()


@pytest.fixture(params=[None, Line.RESULTS], ids=["in line", "brief"])
def brief(request: pytest.FixtureRequest) -> Line | None:
    found: Line | None = request.param
    return found


def add(number: int) -> Callable[[Connection], int]:
    return lambda connection: connection.execute(INSERT, {"id": number}).rowcount


async def count(database: SqliteDatabase) -> int:
    return await database.read(lambda c: c.execute(COUNT).scalar_one())


def lock(database_file: Path) -> sqlite3.Connection:
    """Another process's connection that holds the file's write lock."""
    other = sqlite3.connect(database_file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


async def test_what_was_acknowledged_is_read_by_others(
    database: SqliteDatabase, tmp_path: Path, *, brief: Line | None
) -> None:
    await database.write(add(1), brief=brief)
    with sqlite3.connect(tmp_path / "notes.db") as other:
        assert other.execute("SELECT count(*) FROM note").fetchone() == (1,)
    other.close()


async def test_changes_that_wait_together_are_all_kept(
    database: SqliteDatabase, *, brief: Line | None
) -> None:
    await asyncio.gather(*(database.write(add(number), brief=brief) for number in range(500)))
    assert await count(database) == 500


async def test_a_failing_change_spoils_none_of_its_neighbours(
    database: SqliteDatabase, *, brief: Line | None
) -> None:
    changes = [database.write(add(number), brief=brief) for number in (1, 2, 1, 3)]
    done = await asyncio.gather(*changes, return_exceptions=True)
    assert [type(one) for one in done] == [int, int, IntegrityError, int]
    assert await count(database) == 3


async def test_a_failing_change_leaves_nothing_of_itself(
    database: SqliteDatabase, *, brief: Line | None
) -> None:
    def half(connection: Connection) -> None:
        add(1)(connection)
        raise LookupError("changed my mind")

    with pytest.raises(LookupError):
        await database.write(half, brief=brief)
    assert await count(database) == 0


async def test_a_notice_comes_after_the_commit_and_only_then(
    database: SqliteDatabase, tmp_path: Path, *, brief: Line | None
) -> None:
    seen: list[tuple[str, int]] = []
    other = sqlite3.connect(tmp_path / "notes.db")

    def listen(notice: str) -> None:
        seen.append((notice, other.execute("SELECT count(*) FROM note").fetchone()[0]))

    def told(connection: Connection) -> None:
        announce(connection, "one more")
        add(1)(connection)

    def failing(connection: Connection) -> None:
        announce(connection, "never")
        raise LookupError

    database.listen(str, listen)
    await asyncio.gather(
        database.write(told, brief=brief),
        database.write(failing, brief=brief),
        return_exceptions=True,
    )
    other.close()
    assert seen == [("one more", 1)]


async def test_what_is_made_again_after_a_neighbours_failure_is_told_once(
    database: SqliteDatabase, *, brief: Line | None
) -> None:
    heard: list[int] = []
    database.listen(int, heard.append)

    def told(number: int) -> Callable[[Connection], None]:
        def change(connection: Connection) -> None:
            announce(connection, number)
            if number == 2:
                raise LookupError

        return change

    changes = [database.write(told(number), brief=brief) for number in (1, 2, 3)]
    await asyncio.gather(*changes, return_exceptions=True)
    await database.write(add(1), brief=brief)
    assert heard == [1, 3]


async def test_a_listener_that_fails_holds_up_neither_changes_nor_other_listeners(
    database: SqliteDatabase, *, brief: Line | None
) -> None:
    heard: list[str] = []

    def failing(notice: str) -> None:
        raise LookupError(notice)

    database.listen(str, failing)
    database.listen(str, heard.append)
    for _ in range(2):
        told = [database.write(lambda c: announce(c, "x"), brief=brief) for _ in range(100)]
        async with asyncio.timeout(LONG_S):
            await asyncio.gather(*told)
    assert heard == ["x"] * 200


async def test_a_change_waits_until_another_process_lets_go(
    database: SqliteDatabase, tmp_path: Path, *, brief: Line | None
) -> None:
    patient = open_sqlite(tmp_path / "notes.db", busy_timeout_s=0.05, give_up_s=LONG_S)
    other = lock(tmp_path / "notes.db")
    waiting = asyncio.create_task(patient.write(add(1), brief=brief))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    other.execute("ROLLBACK")
    other.close()
    assert await waiting == 1
    await patient.close()


async def test_a_change_is_refused_when_the_lock_is_held_too_long(
    database: SqliteDatabase, tmp_path: Path, *, brief: Line | None
) -> None:
    other = lock(tmp_path / "notes.db")
    with pytest.raises(DatabaseBusyError):
        await database.write(add(1), brief=brief)
    other.execute("ROLLBACK")
    other.close()
    await database.write(add(2), brief=brief)
    assert await count(database) == 1


async def test_reading_goes_on_while_another_process_writes(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    await database.write(add(1))
    other = lock(tmp_path / "notes.db")
    assert await count(database) == 1
    other.close()


async def test_a_full_disk_refuses_the_change_and_the_next_ones_go_on(
    database: SqliteDatabase, *, brief: Line | None
) -> None:
    await database.write(lambda c: c.execute(text("CREATE TABLE big (body BLOB)")))
    await database.write(lambda c: c.execute(text("PRAGMA max_page_count = 20")), brief=brief)
    large = text("INSERT INTO big (body) VALUES (zeroblob(1000000))")
    with pytest.raises(DatabaseBusyError):
        await database.write(lambda c: c.execute(large), brief=brief)
    await database.write(add(1), brief=brief)
    assert await count(database) == 1


async def test_a_change_stands_although_its_waiter_has_gone(
    database: SqliteDatabase, *, brief: Line | None
) -> None:
    waiting = asyncio.create_task(database.write(add(1), brief=brief))
    await asyncio.sleep(0)
    waiting.cancel()
    await database.write(add(2), brief=brief)
    assert await count(database) == 2


async def test_closing_finishes_what_waits(tmp_path: Path, *, brief: Line | None) -> None:
    database = open_sqlite(tmp_path / "other.db")
    await database.write(lambda c: c.execute(text("CREATE TABLE note (id INTEGER PRIMARY KEY)")))
    changes = [
        asyncio.create_task(database.write(add(number), brief=brief)) for number in range(200)
    ]
    await asyncio.sleep(0)
    await database.close()
    assert await asyncio.gather(*changes) == [1] * 200


async def test_a_closed_database_takes_no_change(tmp_path: Path) -> None:
    database = open_sqlite(tmp_path / "other.db")
    await database.close()
    with pytest.raises(DatabaseBusyError):
        await database.write(add(1))


async def test_changes_are_made_in_the_order_in_which_they_are_asked_for(
    database: SqliteDatabase,
) -> None:
    made: list[int] = []

    def note(number: int) -> Callable[[Connection], None]:
        return lambda _connection: made.append(number)

    changes = [
        database.write(note(number), brief=Line.RESULTS if number % 3 else None)
        for number in range(200)
    ]
    await asyncio.gather(*changes)
    assert made == list(range(200))


async def test_brief_changes_are_made_on_the_loop_and_others_on_a_thread(
    database: SqliteDatabase,
) -> None:
    here = threading.get_ident()
    assert await database.write(lambda _: threading.get_ident(), brief=Line.RESULTS) == here
    assert await database.write(lambda _: threading.get_ident()) != here
    assert await database.write(lambda _: threading.get_ident(), brief=Line.RESULTS) == here


async def test_a_brief_change_lets_the_loop_go_on_while_another_one_is_made(
    database: SqliteDatabase,
) -> None:
    go_on = threading.Event()
    large = asyncio.create_task(database.write(lambda _: go_on.wait(LONG_S)))
    await asyncio.sleep(0)
    small = asyncio.create_task(database.write(add(1), brief=Line.RESULTS))
    await asyncio.sleep(0.05)
    assert not small.done()
    go_on.set()
    assert await asyncio.gather(large, small) == [True, 1]


async def test_a_brief_change_lets_the_loop_go_on_while_the_file_is_locked(tmp_path: Path) -> None:
    patient = open_sqlite(tmp_path / "notes.db", busy_timeout_s=LONG_S, give_up_s=LONG_S)
    await patient.write(lambda c: c.execute(text("CREATE TABLE note (id INTEGER PRIMARY KEY)")))
    other = lock(tmp_path / "notes.db")
    waiting = asyncio.create_task(patient.write(add(1), brief=Line.RESULTS))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    other.execute("ROLLBACK")
    other.close()
    assert await waiting == 1
    await patient.close()


async def test_what_brief_changes_write_goes_into_the_file_from_time_to_time(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    log = tmp_path / "notes.db-wal"

    async def size_after(first: int, last: int) -> int:
        for number in range(first, last):
            await database.write(add(number), brief=Line.RESULTS)
        return log.stat().st_size

    early = await size_after(0, 1_000)
    assert await size_after(1_000, 4_000) < 3 * early


async def test_a_full_disk_is_logged_once_at_its_start_and_once_at_its_end(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch, *, brief: Line | None
) -> None:
    monkeypatch.setattr(pending_changes, "_DISK_WORKS_AFTER_S", 0.0)

    def allow_pages(most: int) -> Callable[[Connection], object]:
        return lambda c: c.execute(text(f"PRAGMA max_page_count = {most}")).scalar_one()

    store = text("INSERT INTO body VALUES (zeroblob(100000))")
    await database.write(lambda c: c.execute(text("CREATE TABLE body (bytes BLOB)")).rowcount)
    for each in (None, Line.RESULTS):  # each has a connection of its own
        await database.write(allow_pages(1), brief=each)
    with capture_logs() as logs:
        changes = [
            database.write(lambda c: c.execute(store).rowcount, brief=brief) for _ in range(4)
        ]
        done = await asyncio.gather(*changes, return_exceptions=True)
        assert {type(one) for one in done} == {DatabaseFullError}
        for each in (None, Line.RESULTS):
            await database.write(allow_pages(1_000_000), brief=each)
        await database.write(lambda c: c.execute(store).rowcount, brief=brief)
    assert [one["event"] for one in logs] == ["database.disk_full", "database.disk_works"]
    assert logs[1]["refused"] == 4
