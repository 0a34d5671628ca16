"""The database on PostgreSQL: what is kept, in which order, and what happens when it goes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from service.db.engine import (
    DatabaseBusyError,
    DatabaseFullError,
    DatabaseUnsureError,
    DatabaseUnusableError,
    Line,
    NoticesLost,
    announce,
    need_alone,
)
from service.db.postgresql import PostgresDatabase, open_postgresql
from service.db.postgresql_rows import execute_delayed, execute_later
from service.db.savepoints import attempt
from service.notices import GatheredNotice, SharedNotice
from tests.builders.patience import LONG_S
from tests.servers.postgresql import LocalPostgres, PostgresServer, require_programs

INSERT = text("INSERT INTO note (id) VALUES (:id)")
COUNT = text("SELECT count(*) FROM note")
IDS = text("SELECT id FROM note ORDER BY id")
FAIL = "DO $$ BEGIN RAISE EXCEPTION 'as if' USING ERRCODE = '{code}'; END $$"


@dataclass(frozen=True, slots=True)
class Said(SharedNotice):
    """For every process."""

    word: str


@dataclass(frozen=True, slots=True)
class Named(GatheredNotice):
    """For every process, too."""


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    with postgres.database() as address:
        with psycopg.connect(address) as connection:
            connection.execute("CREATE TABLE note (id INTEGER PRIMARY KEY)")
            connection.execute("CREATE TABLE total (value INTEGER)")
            connection.execute("INSERT INTO total VALUES (0)")
        yield address


@pytest.fixture
async def database(url: str) -> AsyncIterator[PostgresDatabase]:
    opened = open_postgresql(url, give_up_s=LONG_S)
    yield opened
    await opened.close()


@pytest.fixture
async def other(url: str) -> AsyncIterator[PostgresDatabase]:
    """As another process of the service has it open."""
    opened = open_postgresql(url, give_up_s=LONG_S)
    yield opened
    await opened.close()


async def test_a_statement_and_an_idle_transaction_end_by_themselves(
    database: PostgresDatabase,
) -> None:
    """A process that hangs must not hold locks, or keep PostgreSQL from removing old rows."""

    def limits(connection: Connection) -> list[str]:
        names = ("statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout")
        return [str(connection.execute(text(f"SHOW {one}")).scalar_one()) for one in names]

    expected = ["30s", "1min", "2s"]
    assert await database.write(limits) == expected
    assert await database.write(limits, brief=Line.CLAIMS) == expected
    assert await database.read(limits) == expected


@pytest.fixture(params=[None, Line.RESULTS], ids=["in line", "brief"])
def brief(request: pytest.FixtureRequest) -> Line | None:
    found: Line | None = request.param
    return found


def add(number: int) -> Callable[[Connection], int]:
    return lambda connection: connection.execute(INSERT, {"id": number}).rowcount


def add_later(*numbers: int) -> Callable[[Connection], list[int]]:
    """Rows that nobody reads in the transaction; returns those that it sees all the same."""

    def change(connection: Connection) -> list[int]:
        for number in numbers:
            execute_later(connection, "INSERT INTO note (id) VALUES (%s)", (number,))
        return list(connection.execute(IDS).scalars())

    return change


def count_up(connection: Connection) -> None:
    """As the service's actions do: read, decide, write."""
    value = connection.execute(text("SELECT value FROM total")).scalar_one()
    connection.execute(text("UPDATE total SET value = :value"), {"value": value + 1})


async def count(database: PostgresDatabase) -> int:
    return await database.read(lambda c: c.execute(COUNT).scalar_one())


def cut_all_off(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


async def test_changes_that_wait_together_are_all_kept(
    database: PostgresDatabase, *, brief: Line | None
) -> None:
    await asyncio.gather(*(database.write(add(number), brief=brief) for number in range(300)))
    assert await count(database) == 300


async def test_changes_of_a_line_are_made_in_the_order_in_which_they_are_asked_for(
    database: PostgresDatabase, *, brief: Line | None
) -> None:
    made: list[int] = []

    def note(number: int) -> Callable[[Connection], None]:
        return lambda _: made.append(number)

    changes = [database.write(note(number), brief=brief) for number in range(50)]
    await asyncio.gather(*changes)
    assert made == list(range(50))


async def test_a_failing_change_spoils_none_of_its_neighbours(
    database: PostgresDatabase, *, brief: Line | None
) -> None:
    changes = [database.write(add(number), brief=brief) for number in (1, 2, 1, 3)]
    done = await asyncio.gather(*changes, return_exceptions=True)
    assert [type(one) for one in done] == [int, int, IntegrityError, int]
    assert await count(database) == 3


async def test_a_change_that_hides_the_failure_of_a_statement_fails(
    database: PostgresDatabase,
) -> None:
    def hiding(connection: Connection) -> None:
        with pytest.raises(IntegrityError):
            add(1)(connection)

    await database.write(add(1))
    changes = [database.write(one) for one in (add(2), hiding, add(3))]
    done = await asyncio.gather(*changes, return_exceptions=True)
    assert isinstance(done[1], psycopg.errors.InFailedSqlTransaction)
    assert await count(database) == 3


async def test_a_notice_comes_after_the_commit_and_only_then(
    database: PostgresDatabase, url: str, *, brief: Line | None
) -> None:
    seen: list[tuple[str, int]] = []

    def listen(notice: str) -> None:
        with psycopg.connect(url) as connection:
            [row] = connection.execute("SELECT count(*) FROM note").fetchall()
        seen.append((notice, row[0]))

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
    assert seen == [("one more", 1)]


async def test_a_part_that_fails_leaves_nothing_and_the_rest_stands(
    database: PostgresDatabase, *, brief: Line | None
) -> None:
    def change(connection: Connection) -> Exception | None:
        add(1)(connection)
        problem = attempt(
            connection, lambda: [add(number)(connection) for number in (2, 1)] and None
        )
        assert attempt(connection, lambda: add(3)(connection) and None) is None
        return problem

    assert isinstance(await database.write(change, brief=brief), IntegrityError)
    assert await database.read(lambda c: list(c.execute(IDS).scalars())) == [1, 3]


async def test_changes_of_two_processes_exclude_each_other(
    database: PostgresDatabase, other: PostgresDatabase
) -> None:
    changes = [one.write(count_up) for _ in range(100) for one in (database, other)]
    await asyncio.gather(*changes)
    total = text("SELECT value FROM total")
    assert await other.read(lambda c: c.execute(total).scalar_one()) == 200


async def test_brief_changes_of_two_processes_run_beside_each_other(
    database: PostgresDatabase, other: PostgresDatabase
) -> None:
    """Each waits within its transaction until the other one's has begun."""
    begun = [asyncio.Event(), asyncio.Event()]
    loop = asyncio.get_running_loop()

    def meet(mine: int) -> Callable[[Connection], None]:
        def change(_: Connection) -> None:
            loop.call_soon_threadsafe(begun[mine].set)
            waits = asyncio.wait_for(begun[1 - mine].wait(), LONG_S)
            asyncio.run_coroutine_threadsafe(waits, loop).result()

        return change

    await asyncio.gather(
        database.write(meet(0), brief=Line.RESULTS), other.write(meet(1), brief=Line.RESULTS)
    )


async def test_a_brief_change_that_needs_the_database_alone_gets_it(
    database: PostgresDatabase, other: PostgresDatabase
) -> None:
    def change(connection: Connection) -> None:
        need_alone(connection)
        count_up(connection)

    changes = [
        one.write(change, brief=Line.RESULTS) for _ in range(50) for one in (database, other)
    ]
    await asyncio.gather(*changes)
    total = text("SELECT value FROM total")
    assert await other.read(lambda c: c.execute(total).scalar_one()) == 100


async def test_other_processes_are_told_what_concerns_them_once_and_nothing_else(
    database: PostgresDatabase, other: PostgresDatabase
) -> None:
    here, there, mine = list[str](), list[str](), list[str]()
    database.listen(Said, lambda notice: here.append(notice.word))
    other.listen(Said, lambda notice: there.append(notice.word))
    other.listen(str, mine.append)

    def greet(connection: Connection) -> None:
        announce(connection, "of this process")
        announce(connection, Said("hello"))

    async with asyncio.timeout(LONG_S):
        for word, change in (("begin", None), ("end", greet)):
            if change is not None:
                await database.write(change)
            while word not in there:  # the other process may not listen yet
                await database.write(lambda c, word=word: announce(c, Said(word)))
                await asyncio.sleep(0.02)
    assert here.count("hello") == there.count("hello") == 1
    assert mine == []


async def told(database: PostgresDatabase, other: PostgresDatabase) -> None:
    """Return once what one announces comes to the other; it may not have listened before."""
    heard = asyncio.Event()
    other.listen(Said, lambda _: heard.set())
    async with asyncio.timeout(LONG_S):
        while not heard.is_set():
            await database.write(lambda c: announce(c, Said("hello")))
            await asyncio.sleep(0.02)


async def test_others_are_told_all_ids_each_once_in_as_many_messages_as_it_takes(
    database: PostgresDatabase, other: PostgresDatabase
) -> None:
    await told(database, other)
    ids = tuple(f"{'ü' * 20} {number}" for number in range(1_000))
    came: list[str] = []
    is_all = asyncio.Event()

    def note(notice: Named) -> None:
        came.extend(notice.ids)
        if len(came) >= len(ids):
            is_all.set()

    other.listen(Named, note)

    def change(connection: Connection) -> None:
        announce(connection, Named(ids[:600]))
        announce(connection, Named(ids[400:]))

    await database.write(change)
    async with asyncio.timeout(LONG_S):
        await is_all.wait()
    assert sorted(came) == sorted(ids)


@pytest.mark.parametrize("reason", ["too long", "unreadable", "cut off"])
async def test_others_look_for_themselves_once_a_notice_is_lost(
    database: PostgresDatabase, other: PostgresDatabase, url: str, reason: str
) -> None:
    await told(database, other)
    lost = asyncio.Event()
    other.listen(NoticesLost, lambda notice: notice.is_certain and lost.set())

    if reason == "too long":
        await database.write(lambda c: announce(c, Said("x" * 8_000)))
    elif reason == "unreadable":
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("""NOTIFY picket, '["Said", {"of": "another release"}]'""")
    else:
        cut_all_off(url)

    async with asyncio.timeout(LONG_S):
        await lost.wait()
    await told(database, other)


async def test_it_goes_on_when_all_connections_are_cut_off(
    database: PostgresDatabase, url: str
) -> None:
    stored: list[int] = []
    unsure: list[int] = []

    async def keep_adding(first: int) -> None:
        for number in range(first, first + 60):
            try:
                await database.write(add(number), brief=None if first % 2 else Line.RESULTS)
            except (DatabaseUnsureError, IntegrityError):
                unsure.append(number)
            else:
                stored.append(number)
            with suppress(DatabaseBusyError):
                await count(database)

    async def keep_cutting() -> None:
        for _ in range(10):
            await asyncio.to_thread(cut_all_off, url)
            await asyncio.sleep(0.05)

    await asyncio.gather(*(keep_adding(1000 * place) for place in (1, 2, 3)), keep_cutting())
    kept = set(await database.read(lambda c: list(c.execute(IDS).scalars())))
    assert set(stored) <= kept <= set(stored) | set(unsure)


async def test_a_held_lock_is_waited_for_and_then_refused(url: str) -> None:
    opened = open_postgresql(url, give_up_s=0.1)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(opened.close)
        holding = await psycopg.AsyncConnection.connect(url)
        stack.push_async_callback(holding.close)
        await holding.execute("LOCK TABLE note")
        with pytest.raises(DatabaseBusyError, match="lock timeout"):
            await opened.write(add(1))
        await holding.rollback()
        await opened.write(add(2))
        assert await count(opened) == 1


async def test_a_full_disk_is_no_fault_of_the_change(database: PostgresDatabase) -> None:
    def fill(connection: Connection) -> None:
        add(1)(connection)
        connection.exec_driver_sql(FAIL.format(code="53100"))

    with pytest.raises(DatabaseFullError):
        await database.write(lambda c: attempt(c, lambda: fill(c)))
    assert await count(database) == 0


async def test_a_deadlock_is_no_fault_of_the_change(database: PostgresDatabase) -> None:
    tries: list[int] = []

    def change(connection: Connection) -> None:
        add(1)(connection)
        tries.append(1)
        if len(tries) < 3:
            connection.exec_driver_sql(FAIL.format(code="40P01"))

    await database.write(change)
    assert (len(tries), await count(database)) == (3, 1)


async def test_a_database_that_sorts_by_a_language_is_refused(postgres: PostgresServer) -> None:
    name = "sorted_by_language"
    postgres.run(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'")
    try:
        with pytest.raises(DatabaseUnusableError, match="SQL_ASCII"):
            open_postgresql(postgres.url(name))
    finally:
        postgres.run(f"DROP DATABASE {name} WITH (FORCE)")


async def test_a_server_that_is_away_is_named_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnusableError) as caught:
        open_postgresql(f"postgresql://picket:hidden@/picket?host={tmp_path}")
    assert "cannot be used as a database" in str(caught.value)
    assert "hidden" not in str(caught.value)


async def test_changes_wait_while_the_server_restarts_and_are_refused_when_it_stays_away() -> None:
    with TemporaryDirectory() as folder:
        server = LocalPostgres(require_programs(), Path(folder))
        with server.running() as running, running.database() as url:
            opened = open_postgresql(url, give_up_s=LONG_S)
            await opened.write(lambda c: c.execute(text("CREATE TABLE note (id INTEGER)")))
            await asyncio.to_thread(server.stop)
            waiting = asyncio.create_task(opened.write(add(1)))
            with pytest.raises(DatabaseBusyError):
                await count(opened)
            await asyncio.to_thread(server.start)
            await waiting
            assert await count(opened) == 1
            await opened.close()
            impatient = open_postgresql(url, give_up_s=0.2)
            await asyncio.to_thread(server.stop)
            with pytest.raises(DatabaseBusyError):
                await impatient.write(add(2))
            await impatient.close()
            await asyncio.to_thread(server.start)


async def test_what_a_brief_change_leaves_for_its_commit_is_stored_with_it(
    database: PostgresDatabase,
) -> None:
    assert await database.write(add_later(1, 2), brief=Line.RESULTS) == []
    assert await database.read(lambda c: list(c.execute(IDS).scalars())) == [1, 2]
    assert await database.write(add_later(3)) == [1, 2, 3]


async def test_a_commit_that_fails_with_what_was_left_for_it_stores_nothing(
    database: PostgresDatabase,
) -> None:
    await database.write(add(2))
    with pytest.raises(psycopg.errors.UniqueViolation):
        await database.write(add_later(1, 2), brief=Line.RESULTS)
    assert await count(database) == 1
    assert await database.write(add_later(3), brief=Line.RESULTS) == [2]
    assert await count(database) == 2


async def test_a_brief_change_sees_what_it_has_left_for_its_commit_once_it_asks(
    database: PostgresDatabase,
) -> None:
    def change(connection: Connection) -> list[int]:
        add_later(1)(connection)
        execute_delayed(connection)
        return list(connection.execute(IDS).scalars())

    assert await database.write(change, brief=Line.CLAIMS) == [1]
    assert await count(database) == 1


async def test_a_part_that_fails_leaves_nothing_for_the_commit_and_loses_nothing_of_before(
    database: PostgresDatabase,
) -> None:
    def change(connection: Connection) -> Exception | None:
        add_later(1)(connection)

        def part() -> None:
            add_later(2)(connection)
            execute_delayed(connection)
            add_later(3)(connection)
            raise LookupError

        return attempt(connection, part)

    assert isinstance(await database.write(change, brief=Line.RESULTS), LookupError)
    assert await database.read(lambda c: list(c.execute(IDS).scalars())) == [1]
