"""Results lie in a partition for each day; what has to be locked for it holds nobody up."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic import command
from alembic.config import Config
from psycopg.errors import UniqueViolation
from sqlalchemy import Connection, Engine, create_engine, insert, make_url, select, text
from sqlalchemy.exc import IntegrityError

from service.db.ids import new_id
from service.db.migrate import SCRIPTS, migrate
from service.db.partitions import days
from service.db.partitions.days import AHEAD, DAY_MS
from service.db.tables.runs import result, run_final
from tests.servers.postgresql import PostgresServer

TODAY_MS = int(time.time() * 1000) // DAY_MS * DAY_MS
FAR_AWAY = 400
PLACES = text("SELECT ts, tableoid::regclass::text FROM result ORDER BY ts")
FILE = "SELECT pg_relation_filenode('{}')"


def connect(url: str) -> Engine:
    return create_engine(make_url(url).set(drivername="postgresql+psycopg"))


@pytest.fixture
def engine(postgres: PostgresServer) -> Iterator[Engine]:
    """On a database with the newest schema."""
    with postgres.database(template=postgres.template()) as url:
        made = connect(url)
        yield made
        made.dispose()


@pytest.fixture
def older(postgres: PostgresServer) -> Iterator[Engine]:
    """On a database from before there were days."""
    with postgres.database() as url:
        made = connect(url)
        with made.begin() as connection:
            config = Config()
            config.set_main_option("script_location", str(SCRIPTS))
            config.attributes["connection"] = connection
            command.upgrade(config, "0030")
        yield made
        made.dispose()


def put(connection: Connection, *times_ms: int) -> None:
    """Store a result and its mark for each time."""
    for number, ts in enumerate(times_ms):
        values = {
            "check_id": "c",
            "ts": ts,
            "id": new_id(ts),
            "run_id": ts,
            "fence": number,
            "location": "cellar",
            "source": "SCHEDULER",
            "result_type": "FINAL",
            "status": "PASSED",
            "attempt": 1,
            "over_max_response_time": False,
            "scheduled_ms": ts,
            "stopped_ms": ts,
            "created_ms": ts,
        }
        connection.execute(insert(result), values)
        connection.execute(insert(run_final), {"run_id": ts, "fence": 1, "result_ms": ts})


def places(connection: Connection) -> list[str]:
    """The partition of each result, in the order of time."""
    return [place for _, place in connection.execute(PLACES)]


def named(*numbers: int) -> list[str]:
    return [days._name("result", TODAY_MS + number * DAY_MS) for number in numbers]


def test_a_row_lies_in_the_partition_of_its_day_and_in_none_of_its_own_elsewhere(
    engine: Engine,
) -> None:
    with engine.begin() as connection:
        put(connection, *(TODAY_MS + day * DAY_MS for day in (-FAR_AWAY, -1, 0, AHEAD, FAR_AWAY)))
        assert places(connection) == [
            "result_default",
            *named(-1, 0, AHEAD),
            "result_default",
        ]
        assert not days.lacks_days(connection)


def test_a_day_takes_the_rows_that_came_before_it_was_made(engine: Engine) -> None:
    with engine.begin() as connection:
        put(connection, TODAY_MS - 9 * DAY_MS, TODAY_MS - 8 * DAY_MS - 1, TODAY_MS - 8 * DAY_MS)
        days.create_day(connection, TODAY_MS - 9 * DAY_MS)
        assert places(connection) == [*named(-9, -9), "result_default"]


def test_an_upgrade_leaves_rows_in_the_file_where_they_are(older: Engine) -> None:
    with older.begin() as connection:
        put(connection, TODAY_MS - 20 * DAY_MS, TODAY_MS, TODAY_MS + FAR_AWAY * DAY_MS)
        before = [
            connection.execute(text(FILE.format(t))).scalar() for t in ("result", "run_final")
        ]
        migrate(connection)
        tables = ("result_before", "run_final_before")
        after = [connection.execute(text(FILE.format(t))).scalar() for t in tables]
        assert after == before
        put(connection, TODAY_MS + 1, TODAY_MS + DAY_MS)
        assert places(connection) == [
            *("result_before", "result_before", "result_before"),
            *named(1),
            "result_default",
        ]
        [first, *_] = days.list_days(connection)
        assert first == (None, TODAY_MS + DAY_MS)
        assert days.drop_day(connection, first)
        assert places(connection) == [*named(1), "result_default"]


def test_a_final_result_that_is_stored_twice_is_refused(engine: Engine) -> None:
    row = {"run_id": 7, "fence": 1, "result_ms": TODAY_MS}
    with engine.begin() as connection:
        connection.execute(insert(run_final), row)
        with pytest.raises(IntegrityError) as refused:
            connection.execute(insert(run_final), row)
    assert isinstance(refused.value.orig, UniqueViolation)


def test_replicas_that_make_the_same_days_make_them_once(older: Engine) -> None:
    with older.begin() as connection:
        migrate(connection)
        for day in days.list_days(connection):
            assert days.drop_day(connection, day)

    def make(_number: int) -> None:
        # Changes of replicas exclude each other by the lock that each ordinary one holds.
        with older.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(1)"))
            days.create_ahead(connection)

    with ThreadPoolExecutor(3) as replicas:
        list(replicas.map(make, range(3)))
    with older.begin() as connection:
        assert len(days.list_days(connection)) == AHEAD + 2
        assert not days.lacks_days(connection)


def test_who_reads_keeps_a_day_and_nobody_waits_for_the_reader(engine: Engine) -> None:
    with engine.connect() as reader, engine.connect() as writer:
        assert reader.execute(select(result.c.id)).all() == []
        day = days.list_days(writer)[0]
        assert not days.drop_day(writer, day)
        put(writer, TODAY_MS)
        assert days.list_days(writer)[0] == day
        limit = writer.execute(text("SHOW lock_timeout")).scalar()
        assert limit != "200ms"
        writer.commit()
        reader.commit()
        assert days.drop_day(writer, day)
        writer.commit()
        assert days.list_days(writer)[0] != day


def test_a_day_that_cannot_be_made_now_is_made_later(engine: Engine) -> None:
    day_ms = TODAY_MS - 5 * DAY_MS
    with engine.connect() as reader, engine.connect() as writer:
        put(writer, day_ms)
        writer.commit()
        assert len(reader.execute(select(result.c.id)).all()) == 1
        days.create_day(writer, day_ms)
        assert places(writer) == ["result_default"]
        writer.commit()
        reader.commit()
        days.create_day(writer, day_ms)
        assert places(writer) == named(-5)
