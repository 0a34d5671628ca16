"""A feature's SQL is its own: other features ask its `actions`.

Who may import the engine in `service/db` is a contract in pyproject.toml.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SQL_MODULES = {"store", "sqlite", "postgresql", "queue", "engines"}
"""What modules with SQL are called; `queue` and `engines` choose among those of the job queue."""


def imports(source: str) -> Iterator[str]:
    """Every dotted name that the source imports, wherever it does so."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)


def foreign_sql(path: Path, source: str) -> set[str]:
    """The modules with SQL of a feature other than the file's own that the file imports."""
    own = path.parent.parts
    found = {tuple(name.split(".")[:3]) for name in imports(source)}
    return {
        ".".join(name)
        for name in found
        if len(name) == 3 and name[0] == "service" and name[2] in SQL_MODULES
        if name[1] != "db" and own[:2] != name[:2]
    }


def test_the_sql_of_a_feature_is_imported_by_that_feature_only() -> None:
    product = ("contract", "redaction", "sandbox", "runners", "agent", "service", "picket")
    paths = [path for package in product for path in (ROOT / package).rglob("*.py")]
    found = {
        str(path.relative_to(ROOT)): names
        for path in paths
        if (names := foreign_sql(path.relative_to(ROOT), path.read_text()))
    }
    assert found == {}, "ask the feature's `actions`"


@pytest.mark.parametrize(
    "source",
    [
        "from service.jobs import store",
        "from service.jobs.store import drop",
        "import service.jobs.sqlite",
        "def late() -> None:\n    from service.jobs.engines import queue_of",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from service.jobs import queue",
    ],
)
def test_an_import_of_another_feature_s_sql_is_found(source: str) -> None:
    assert len(foreign_sql(Path("service/checks/actions.py"), source)) == 1
    assert len(foreign_sql(Path("service/app.py"), source)) == 1
    assert foreign_sql(Path("service/jobs/actions.py"), source) == set()
