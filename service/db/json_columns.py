"""JSON columns of which one may be damaged: it spoils no other row."""

import json
from typing import Any

import structlog
from sqlalchemy import JSON
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

log = structlog.get_logger()


def read_json(text: str) -> Any:
    """The value of a JSON column; empty where its text is no JSON."""
    try:
        return json.loads(text)
    except ValueError as problem:
        log.warning("database.broken_json", reason=str(problem), letters=len(text))
        return {}


class readable_json(FunctionElement[Any]):  # noqa: N801 - a function of SQL
    """A JSON column, NULL where it holds no JSON: SQLite would refuse the whole query."""

    name = "readable_json"
    inherit_cache = True
    type = JSON()


@compiles(readable_json)
def _as_it_is(element: readable_json, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(readable_json, "sqlite")
def _where_valid(element: readable_json, compiler: SQLCompiler, **options: Any) -> str:
    column = compiler.process(element.clauses, **options)
    return f"CASE WHEN json_valid({column}) THEN {column} END"
