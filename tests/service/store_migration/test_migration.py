"""Databases that move to PostgreSQL and back: what arrives, what is refused, what is resumed."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, create_engine

from service.cli import run
from service.data_dir import held_folders
from service.db.migrate import NewerSchemaError, create_unfinished, migrate
from service.db.partitions.days import DAY_MS
from service.db.tables.metadata import metadata
from service.settings import Settings
from service.store_migration.sqlite import SqliteStore
from tests.builders.any_rows import ROWS, add_results, fill_every_table
from tests.builders.patience import LONG_S
from tests.servers.postgresql import PostgresServer

ROOT = Path(__file__).parents[3]
RESULTS = 5_000


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The database of an installation with rows in every table."""
    monkeypatch.setenv("SERVICE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "master-key").write_text("ab" * 32)
    database = tmp_path / "data" / "picket.db"
    store = SqliteStore(database)
    with store.engine.begin() as connection:
        migrate(connection)
        fill_every_table(connection)
        add_results(connection, count=RESULTS)
        connection.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = 'job'")
        connection.exec_driver_sql(
            "INSERT INTO sqlite_sequence VALUES ('job', 9000000000000000000)"
        )
    store.engine.dispose()
    return database


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    """An empty PostgreSQL database."""
    with postgres.database() as empty:
        yield empty


def dump(database: Path) -> dict[str, list[Any]]:
    """All that is in a file: rows with the types that SQLite gives them, and what it counts."""
    with closing(sqlite3.connect(database)) as connection:
        tables = [*metadata.tables, "alembic_version", "sqlite_sequence"]
        return {
            name: sorted(connection.execute(f'SELECT * FROM "{name}"'), key=repr) for name in tables
        }


def test_every_row_comes_back_as_it_was(
    tmp_path: Path, file: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dump(file)
    assert all(len(before[name]) >= ROWS for name in metadata.tables)
    assert run(["migrate-store", "--to", url]) == 0
    assert dump(file) == before, "the source stays as it is"
    monkeypatch.setenv("DATABASE_URL", url)
    assert run(["migrate-store", "--to", f"sqlite:///{tmp_path / 'back' / 'other.db'}"]) == 0
    assert dump(tmp_path / "back" / "other.db") == before
    assert (tmp_path / "back" / "master-key").read_text() == "ab" * 32


def test_values_are_the_same_to_the_service_on_both_engines(file: Path, url: str) -> None:
    assert run(["migrate-store", "--to", url]) == 0
    sqlite, postgresql = create_engine(f"sqlite:///{file}"), create_engine(_by_psycopg(url))
    with sqlite.connect() as ours, postgresql.connect() as theirs:
        for table in metadata.sorted_tables:
            query = table.select().order_by(*table.primary_key.columns)
            found = [tuple(row) for row in theirs.execute(query)]
            assert found == [tuple(row) for row in ours.execute(query)], table.name
    for engine in (sqlite, postgresql):
        engine.dispose()


def test_results_lie_in_the_partitions_of_their_days(file: Path, url: str) -> None:
    today_ms = time.time_ns() // 1_000_000 // DAY_MS * DAY_MS
    with closing(sqlite3.connect(file)) as connection, connection:
        changed = f"UPDATE result SET ts = {today_ms} - 10 * {DAY_MS} WHERE check_id = 'm'"
        connection.execute(changed)
    assert run(["migrate-store", "--to", url]) == 0
    with psycopg.connect(url) as connection:
        query = "SELECT DISTINCT tableoid::regclass::text FROM result WHERE check_id = 'm'"
        [(place,)] = connection.execute(query).fetchall()
    assert place == f"result_{datetime.fromtimestamp(today_ms / 1000 - 864_000, UTC):%Y%m%d}"


def test_numbers_go_on_where_they_were(file: Path, url: str) -> None:
    assert run(["migrate-store", "--to", url]) == 0
    with psycopg.connect(url) as connection:
        [(next_job,)] = connection.execute("SELECT nextval('job_id_seq')")
        [(next_alert,)] = connection.execute("SELECT nextval('check_alert_serial_seq')")
    assert next_job == 9_000_000_000_000_000_001
    assert next_alert == 10**12 + ROWS


def test_the_table_of_the_output_has_the_rows_and_sums_of_each_table(
    file: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["migrate-store", "--to", url]) == 0
    lines = capsys.readouterr().out.splitlines()
    [result] = [line.split() for line in lines if line.startswith("result ")]
    assert result[1:3] == [str(RESULTS + ROWS)] * 2
    assert len(result[3]) == 16
    assert {line.split()[0] for line in lines} >= set(metadata.tables)
    assert f"keys, artifacts and bundles stay in {file.parent}" in lines


def test_a_move_that_was_killed_goes_on_and_copies_no_row_twice(
    file: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is killed within a batch, some batches after the first one of a table."""
    with psycopg.connect(url, autocommit=True) as held:
        with changing(url) as connection:
            create_unfinished(connection)
            _block_one_row(connection)
        held.execute("SELECT pg_advisory_lock(1)")
        command = [sys.executable, "-m", "service", "migrate-store", "--to", url]
        process = subprocess.Popen(command, cwd=ROOT, env=dict(os.environ))
        _wait_until_blocked(held, process)
        process.send_signal(signal.SIGKILL)
        assert process.wait(LONG_S) == -signal.SIGKILL
        [(there,)] = held.execute("SELECT count(*) FROM result")
        assert 0 < there < RESULTS
        with pytest.raises(NewerSchemaError, match="run it again"):
            _start_on(url)
        held.execute("SELECT pg_advisory_unlock(1)")
        held.execute("DROP TRIGGER blocked ON result")
    assert run(["migrate-store", "--to", url]) == 0
    lines = capsys.readouterr().out.splitlines()
    [result] = [line.split() for line in lines if line.startswith("result ")]
    assert result[1:3] == [str(RESULTS + ROWS), str(RESULTS + ROWS - there)]
    _start_on(url)


def _block_one_row(connection: Connection) -> None:
    """Whoever inserts it waits for an advisory lock."""
    connection.exec_driver_sql(
        "CREATE FUNCTION block() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF NEW.id = 'more-{RESULTS - 500:06}' THEN PERFORM pg_advisory_xact_lock(1); END IF;"
        " RETURN NEW; END $$"
    )
    connection.exec_driver_sql(
        "CREATE TRIGGER blocked BEFORE INSERT ON result FOR EACH ROW EXECUTE FUNCTION block()"
    )


def _wait_until_blocked(connection: psycopg.Connection[Any], process: Any) -> None:
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    late = time.monotonic() + LONG_S
    while connection.execute(waiting).fetchone() == (0,):
        assert process.poll() is None
        assert time.monotonic() < late
        time.sleep(0.05)


def _start_on(url: str) -> None:
    """What a service does first with its database."""
    with changing(url) as connection:
        migrate(connection)


@contextmanager
def changing(url: str) -> Iterator[Connection]:
    """A transaction on a PostgreSQL database."""
    engine = create_engine(_by_psycopg(url))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def _by_psycopg(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")


def test_rows_that_changed_between_two_runs_are_found(
    file: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with changing(url) as connection:
        create_unfinished(connection)
        connection.exec_driver_sql(
            "INSERT INTO account (id, name, created_ms) VALUES ('0plain', 'other', 1)"
        )
    assert run(["migrate-store", "--to", url]) == 2
    assert "the table account differs" in capsys.readouterr().err
    with pytest.raises(NewerSchemaError):
        _start_on(url)


def test_a_running_service_is_refused_on_either_engine(
    file: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with held_folders(Settings(data_dir=file.parent, database=file)):
        assert run(["migrate-store", "--to", url]) == 2
    assert "another service uses the database" in capsys.readouterr().err
    assert run(["migrate-store", "--to", url]) == 0
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("SERVICE_DATA_DIR", str(file.parent.parent / "elsewhere"))
    with psycopg.connect(url, application_name="picket"):
        assert run(["migrate-store", "--to", "sqlite"]) == 2
    assert "a service uses the database" in capsys.readouterr().err


def test_a_database_with_tables_is_no_target(
    file: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE mine (id int)")
    assert run(["migrate-store", "--to", url]) == 2
    assert "already has tables" in capsys.readouterr().err
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables").fetchone() is not None
        assert connection.execute("SELECT to_regclass('account')").fetchone() == (None,)


def test_a_source_of_another_version_is_refused(
    file: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0029'")
        connection.commit()
    assert run(["migrate-store", "--to", url]) == 2
    assert f"{file} has no database of this version" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("UPDATE account SET name = 'a' || char(0) WHERE id = '0plain'", "account.name"),
        ("UPDATE check_ SET doc = '{broken' WHERE id = '0plain'", "check_"),
    ],
    ids=["a NUL in a text", "broken JSON"],
)
def test_a_value_that_postgresql_cannot_keep_is_named(
    file: Path, url: str, capsys: pytest.CaptureFixture[str], statement: str, place: str
) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)
        connection.commit()
    assert run(["migrate-store", "--to", url]) == 2
    said = capsys.readouterr().err
    assert "PostgreSQL cannot keep a value" in said
    assert place in said


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("mysql://ann:hush@db/x", "--to begins with mysql"),
        ("postgresql", "DATABASE_URL names no PostgreSQL database"),
        ("sqlite", "DATABASE_URL names no PostgreSQL database"),
    ],
)
def test_where_to_is_said_in_one_sentence(
    file: Path, capsys: pytest.CaptureFixture[str], to: str, said: str
) -> None:
    assert run(["migrate-store", "--to", to]) == 2
    told = capsys.readouterr().err
    assert told.startswith(said)
    assert "hush" not in told


def test_without_a_file_there_is_nothing_to_move_to_postgresql(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file.unlink()
    monkeypatch.setenv("DATABASE_URL", "postgresql://db.example/picket")
    assert run(["migrate-store", "--to", "postgresql"]) == 2
    assert f"there is no database at {file}" in capsys.readouterr().err
    assert not file.exists()


def test_the_address_may_come_from_a_file(
    tmp_path: Path, file: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that its password is in no argument."""
    secret = tmp_path / "address"
    secret.write_text(url)
    monkeypatch.setenv("DATABASE_URL_FILE", str(secret))
    assert run(["migrate-store", "--to", "postgresql"]) == 0
    with changing(url) as connection:
        assert migrate(connection) is False, "the service has nothing to change"
