"""While replicas are updated one by one, the old ones go on with the schema that a new one made."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    create_engine,
    inspect,
    make_url,
    select,
)

from contract.release import RELEASE
from service.db.migrate import SCRIPTS
from service.db.tables.metadata import metadata
from tests.builders.any_rows import rows_of
from tests.servers.postgresql import PostgresServer

LAST_BREAK: Final = "0028"
"""It replaced a table; several services could not share a database before 0030."""
NEWEST: Final = 5
"""How many revisions are tried as the one that old replicas know."""


def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    return ScriptDirectory.from_config(config)


REVISIONS: Final = sorted(one.revision for one in scripts().walk_revisions())


def reach(connection: Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


@pytest.fixture(params=["sqlite", "postgresql"])
def make_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Engine]]:
    """Makes an empty database each time."""
    numbers = count()
    with ExitStack() as stack:

        def make() -> Engine:
            if request.param == "sqlite":
                url = make_url(f"sqlite:///{tmp_path / f'{next(numbers)}.db'}")
                engine = create_engine(url)
            else:
                server: PostgresServer = request.getfixturevalue("postgres")
                url = make_url(stack.enter_context(server.database()))
                # Statements are prepared at once, as they are where a service has run for a while.
                engine = create_engine(
                    url.set(drivername="postgresql+psycopg"), connect_args={"prepare_threshold": 0}
                )
            stack.callback(engine.dispose)
            return engine

        yield make


@dataclass(frozen=True, slots=True)
class Shape:
    """What old code relies on in a table."""

    columns: Mapping[str, Any]
    keys: frozenset[object]
    """What is unique: one row has it, and ON CONFLICT names it."""
    rules: frozenset[object]
    """What rows have to fulfil besides."""


def shapes(connection: Connection) -> dict[str, Shape]:
    seen = inspect(connection)
    return {
        table: Shape(
            {one["name"]: one for one in seen.get_columns(table)},
            frozenset(
                [
                    tuple(seen.get_pk_constraint(table)["constrained_columns"]),
                    *(tuple(one["column_names"]) for one in seen.get_unique_constraints(table)),
                    *(
                        (*one["column_names"], str(_predicate(one)))
                        for one in seen.get_indexes(table)
                        if one["unique"] and "duplicates_constraint" not in one
                    ),
                ]
            ),
            frozenset(
                [
                    *(str(one["sqltext"]) for one in seen.get_check_constraints(table)),
                    *(tuple(one["constrained_columns"]) for one in seen.get_foreign_keys(table)),
                ]
            ),
        )
        for table in seen.get_table_names()
    }


def _predicate(index: Any) -> object:
    options = index.get("dialect_options", {})
    return options.get("sqlite_where", options.get("postgresql_where", ""))


def breaks(before: Mapping[str, Shape], after: Mapping[str, Shape]) -> set[str]:
    """What code that knows the schema from before can no longer rely on."""
    gone = {f"{table} is gone" for table in before.keys() - after.keys()}
    return gone.union(*(_breaks(one, before[one], after[one]) for one in before.keys() & after))


def _breaks(table: str, before: Shape, after: Shape) -> Iterator[str]:
    for name, column in before.columns.items():
        if fault := _fault(column, after.columns.get(name)):
            yield f"{table}.{name} {fault}"
    for name in after.columns.keys() - before.columns.keys():
        new = after.columns[name]
        if not new["nullable"] and new["default"] is None:
            yield f"{table}.{name} is new, and rows without it are refused"
    yield from (f"{table} has a new key {one}" for one in after.keys - before.keys)
    yield from (f"{table} lost its key {one}" for one in before.keys - after.keys)
    yield from (f"{table} has a new rule {one}" for one in after.rules - before.rules)


def _fault(before: Mapping[str, Any], now: Mapping[str, Any] | None) -> str | None:
    if now is None:
        return "is gone"
    if str(now["type"]) != str(before["type"]):
        return "has another type"
    if before["nullable"] and not now["nullable"]:
        return "takes no NULL any more"
    if before["default"] and not now["default"]:
        return "lost its default"
    return None


def test_a_migration_breaks_nothing_that_code_of_the_release_before_relies_on(
    make_engine: Callable[[], Engine],
) -> None:
    """Unless it says by `unused_since` which earlier release was the first to do without it."""
    found: dict[str, set[str]] = {}
    with make_engine().begin() as connection:
        reach(connection, LAST_BREAK)
        before = shapes(connection)
        for revision in REVISIONS[REVISIONS.index(LAST_BREAK) + 1 :]:
            reach(connection, revision)
            after = shapes(connection)
            if broken := breaks(before, after):
                found[revision] = broken
            before = after
    allowed = {one for one in found if was_unused_before(scripts().get_revision(one).module)}
    assert {one: found[one] for one in found.keys() - allowed} == {}


def was_unused_before(migration: ModuleType) -> bool:
    since: str | None = getattr(migration, "unused_since", None)
    return since is not None and _numbers(since) < _numbers(RELEASE)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def test_what_a_migration_removes_was_out_of_use_for_a_release() -> None:
    def unused_since(release: str) -> ModuleType:
        module = ModuleType("migration")
        module.__dict__["unused_since"] = release
        return module

    assert not was_unused_before(ModuleType("migration"))
    assert not was_unused_before(unused_since(RELEASE))
    assert was_unused_before(unused_since("0.0.9"))


Change = Callable[[Operations], object]
ADDITIONS: Final[dict[str, Change]] = {
    "a table": lambda op: op.create_table("new", Column("id", Integer, primary_key=True)),
    "an index": lambda op: op.create_index("ix_job_check_id", "job", ["check_id"]),
    "a column that may be empty": lambda op: op.add_column("job", Column("new", String)),
    "a column with a default": lambda op: op.add_column(
        "job", Column("new", String, nullable=False, server_default="x")
    ),
    "an index that goes": lambda op: op.drop_index("ix_job_ready", "job"),
}
BREAKS: Final[dict[str, Change]] = {
    "result_detail is gone": lambda op: op.drop_table("result_detail"),
    "late_result is gone": lambda op: op.rename_table("late_result", "belated_result"),
    "job.lane is gone": lambda op: op.drop_column("job", "lane"),
    "job.fence is gone": lambda op: op.execute("ALTER TABLE job RENAME COLUMN fence TO claim"),
    "job.new is new, and rows without it are refused": lambda op: op.execute(
        "ALTER TABLE job ADD COLUMN new TEXT NOT NULL"
    ),
    "job.attempt has another type": lambda op: op.alter_column("job", "attempt", type_=String()),
    "job.agent_id takes no NULL any more": lambda op: op.alter_column(
        "job", "agent_id", nullable=False
    ),
    "ping has a new key ('check_id', '')": lambda op: op.create_index(
        "uq_ping_check_id", "ping", ["check_id"], unique=True
    ),
    "heartbeat lost its key ('token',)": lambda op: op.drop_constraint(
        "uq_heartbeat_token", "heartbeat"
    ),
    "job has a new rule ('check_id',)": lambda op: op.create_foreign_key(
        "fk_job_check_id", "job", "check_", ["check_id"], ["id"]
    ),
}


@pytest.fixture
def newest(postgres: PostgresServer) -> Iterator[Connection]:
    with postgres.database(template=postgres.template()) as url:
        engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
        with engine.connect() as connection:
            yield connection
        engine.dispose()


@pytest.mark.parametrize("change", ADDITIONS.values(), ids=ADDITIONS)
def test_additions_break_nothing(newest: Connection, change: Change) -> None:
    before = shapes(newest)
    change(Operations(MigrationContext.configure(newest)))
    assert breaks(before, shapes(newest)) == set()


@pytest.mark.parametrize("broken", BREAKS)
def test_the_rule_sees_what_would_break_old_code(newest: Connection, broken: str) -> None:
    before = shapes(newest)
    BREAKS[broken](Operations(MigrationContext.configure(newest)))
    assert broken in breaks(before, shapes(newest))


@pytest.mark.parametrize(
    "revision", [one for one in REVISIONS[-NEWEST - 1 : -1] if one >= LAST_BREAK]
)
def test_statements_that_an_old_replica_prepared_go_on_after_a_new_one_migrated(
    make_engine: Callable[[], Engine], revision: str
) -> None:
    """In each table that the old code knows, and of each column that it knows."""
    engine = make_engine()
    with engine.begin() as connection:
        reach(connection, revision)
    known = MetaData()
    known.reflect(engine, only=lambda name, _: name in metadata.tables)  # partitions are not named
    with engine.connect() as old:
        use_every_table(old, known)
        with engine.begin() as new:
            reach(new, "head")
        use_every_table(old, known)


def use_every_table(connection: Connection, known: MetaData) -> None:
    """Insert, read, change and remove rows."""
    tables = known.sorted_tables
    for table in tables:
        rows = list(rows_of(table))
        connection.execute(table.insert(), rows)
        for row in rows:
            this = [one == row[one.key] for one in table.primary_key]
            connection.execute(table.update().where(*this).values(row))
        assert len(connection.execute(select(table)).all()) == len(rows)
    connection.commit()
    for table in reversed(tables):
        for row in rows_of(table):
            connection.execute(table.delete().where(*(c == row[c.key] for c in table.primary_key)))
    connection.commit()
