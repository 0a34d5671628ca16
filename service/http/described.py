"""What stands below a field of a model, as the field's description in the OpenAPI document.

pydantic's `use_attribute_docstrings` reads it as each class is made: a sixth of all that a service
does before it listens, and most are never asked for the document.
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic_core import CoreSchema


class Described(BaseModel):
    """A model whose fields are described by the texts below them."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> dict[str, Any]:
        schema = handler(core_schema)
        shown = handler.resolve_ref_schema(schema).get("properties", {})
        texts = texts_of(cls)
        for name, field in cls.model_fields.items():
            for called in {field.alias, field.serialization_alias, name} & shown.keys():
                if name in texts:
                    shown[called].setdefault("description", texts[name])
        return schema


@cache
def texts_of(model: type) -> Mapping[str, str]:
    """By the field's name; of a field of several bases the first one's, as with pydantic."""
    found: dict[str, str] = {}
    for base in reversed(model.__bases__):
        found |= texts_of(base)
    return {**found, **_texts_in(model.__module__).get(model.__qualname__, {})}


@cache
def _texts_in(module: str) -> Mapping[str, Mapping[str, str]]:
    """By class and name."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):  # no source, as in a module that was compiled
        return {}
    return {name: dict(_texts(one)) for name, one in _classes(tree)}


def _classes(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.ClassDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield within + node.name, node
            yield from _classes(node, f"{within}{node.name}.")


def _texts(one: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for node, below in pairwise(one.body):
        match node, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, inspect.cleandoc(text)
