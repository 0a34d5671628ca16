"""Descriptions of fields in the OpenAPI document: the texts below the fields of a model.

It earns its place by `cpu_s` of `make bench-start`: with pydantic's own `use_attribute_docstrings`,
which reads the source as each class is made, a start costs 1.85 times the CPU time (six alternating
pairs with pydantic 2.14). Here the source is read when somebody asks for the document.
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


class DocumentedModel(BaseModel):
    """A model whose fields are described by the texts below them."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> dict[str, Any]:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        texts = field_texts(cls)
        for name, field in cls.model_fields.items():
            for called in {field.alias, field.serialization_alias, name} & properties.keys():
                if name in texts:
                    properties[called].setdefault("description", texts[name])
        return schema


@cache
def field_texts(model: type) -> Mapping[str, str]:
    """The texts by field name; where bases share a field, the first one's, as in pydantic."""
    found: dict[str, str] = {}
    for base in reversed(model.__bases__):
        found |= field_texts(base)
    return {**found, **_texts_in(model.__module__).get(model.__qualname__, {})}


@cache
def _texts_in(module: str) -> Mapping[str, Mapping[str, str]]:
    """The texts of a module by qualified class name and field name."""
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
