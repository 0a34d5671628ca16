import ast
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import create_mock_engine
from sqlalchemy.schema import ExecutableDDLElement

import service
from service.db import tables
from service.db.tables.metadata import SUBJECTS, metadata

TABLES: Final = "service.db.tables."


def ddl(url: str) -> list[str]:
    statements: list[str] = []

    def note(statement: ExecutableDDLElement, *_args: object, **_kwargs: object) -> None:
        statements.append(" ".join(str(statement.compile(dialect=engine.dialect)).split()))

    engine = create_mock_engine(url, note)
    metadata.create_all(engine, checkfirst=False)
    return statements


def test_the_schema_speaks_postgresql_too() -> None:
    statements = ddl("postgresql+asyncpg://")
    [job] = [one for one in statements if one.startswith("CREATE TABLE job ")]
    assert "id BIGSERIAL NOT NULL" in job
    [ready] = [one for one in statements if "ix_job_ready" in one]
    assert ready.endswith("WHERE state = 0")


def test_a_jobs_number_never_comes_again_on_sqlite() -> None:
    [job] = [one for one in ddl("sqlite://") if one.startswith("CREATE TABLE job ")]
    assert "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT" in job


def test_the_schema_has_all_files_of_tables() -> None:
    files = {path.stem for path in Path(tables.__path__[0]).glob("*.py")}
    subjects = files - {"__init__", "conventions", "metadata"}
    assert sorted(subject.__name__ for subject in SUBJECTS) == sorted(
        f"{TABLES}{subject}" for subject in subjects
    )


JOINED_BY: Final = {
    "check_": {"results", "sessions"},
    "check_state": {"results"},
    "check_group_tag": {"checks"},
}
"""Who else reads a table, because a join in one statement takes a tenth of the time of two: what is
newest of each check, what goes on of a group, and checks by the tags of their groups."""


READERS: Final = ("overview", "audit")
"""Read how all checks stand, and the names of what an entry is about, whichever feature keeps them,
each in one statement a page; their stores write nothing."""


@pytest.mark.parametrize("feature", READERS)
def test_a_feature_that_reads_all_tables_writes_none(feature: str) -> None:
    tree = ast.parse((Path(service.__path__[0]) / feature / "store.py").read_text())
    imported = {
        one.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "sqlalchemy"
        for one in node.names
    }
    assert "select" in imported
    assert not imported & {"insert", "update", "delete", "text"}


def test_each_table_belongs_to_one_feature() -> None:
    owners: dict[str, set[str]] = defaultdict(set)
    for store in Path(service.__path__[0]).glob("*/store*.py"):
        if store.parent.name in READERS:
            continue
        for node in ast.walk(ast.parse(store.read_text())):
            if isinstance(node, ast.ImportFrom) and f"{node.module}".startswith(TABLES):
                for table in node.names:
                    owners[table.name].add(store.parent.name)
    guests = {table: owners[table] & readers for table, readers in JOINED_BY.items()}
    assert guests == JOINED_BY
    assert [table for table in owners if len(owners[table] - guests.get(table, set())) > 1] == []
    assert set(owners) <= set(metadata.tables)
