"""Base models of request and response bodies.

What stands below a field of a model, as the field's description in the OpenAPI document.

pydantic's `use_attribute_docstrings` reads it as each class is made: a sixth of all that a service
does before it listens, and most are never asked for the document.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import islice, pairwise
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError

from contract.suggestions import suggest_name


class DocumentedModel(BaseModel):
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


NO_NUL: Final = r"^[^\x00]*$"


_SLIP: Final = 0.85
"""So much alike are two names of which one is a slip of the pen."""
_MOST_UNKNOWN: Final = 20
_MOST_LETTERS: Final = 60
"""Likeness takes time, and a body may have a hundred thousand fields with names of any length."""


class RequestModel(DocumentedModel):
    """A frozen value in a request; camelCase outside.

    Unknown fields are passed over, because clients of the established service send back what
    they were given (`id`, zero dates, fields of later versions). One that is nearly a known one is
    none of these: somebody has mistyped it, and would not get what they asked for.
    """

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="ignore",
        allow_inf_nan=False,
        alias_generator=to_camel,
        defer_build=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _is_no_slip_of_the_pen(cls, body: Any) -> Any:
        if isinstance(body, Mapping) and (found := _slip_in(body, cls)):
            field, meant = found
            raise field_error(field, f"is not known here, where {meant} may be meant")
        return body


def _slip_in(body: Mapping[Any, Any], model: type[BaseModel]) -> tuple[str, str] | None:
    known = {info.alias or name for name, info in model.model_fields.items()}
    return slip((name for name in body if isinstance(name, str)), known)


def slip(names: Iterable[str], known: Collection[str]) -> tuple[str, str] | None:
    """The first name that is nearly a known one, and that one. None: there is none."""
    unknown = (name for name in names if name not in known)
    for name in islice(unknown, _MOST_UNKNOWN):
        if len(name) <= _MOST_LETTERS and (meant := suggest_name(name, known, alike=_SLIP)):
            return name, meant
    return None


class ResponseModel(DocumentedModel):
    """A frozen value in an answer; camelCase outside."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        defer_build=True,
        serialize_by_alias=True,
    )


def _json_number(value: Any) -> Any:
    """`false` is no number, and `1.0` is an integer, as JSON Schema has it."""
    if isinstance(value, bool):
        raise PydanticCustomError("number_type", "must be a number")
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _storable(value: str) -> str:
    """Refuse what no database keeps: NUL and lone surrogates."""
    try:
        storable = b"\0" not in value.encode()
    except UnicodeEncodeError:
        storable = False
    if not storable:
        raise PydanticCustomError("unstorable", "holds a NUL or half a surrogate pair")
    return value


def spelled(pattern: str, words: str) -> AfterValidator:
    """Refuse other text, in words: people do not read patterns. Give the pattern to the schema."""
    letters = re.compile(pattern)

    def judge(value: str) -> str:
        if letters.fullmatch(value) is None:
            raise PydanticCustomError("rule", "{sentence}", {"sentence": words})
        return value

    return AfterValidator(judge)


def judged_by(problem_of: Callable[[str], str | None]) -> AfterValidator:
    """Refuse a text that a rule of the contract refuses, with the rule's own words."""

    def judge(value: str) -> str:
        if problem := problem_of(value):
            raise field_error("", problem)
        return value

    return AfterValidator(judge)


def zero_is_none(value: Any) -> Any:
    """Clients written in Go send 0 for an id that is not set."""
    return None if value == 0 and isinstance(value, int) and value is not False else value


def blank_is_none(value: Any) -> Any:
    """Clients written in Go send empty text for a text that is not set."""
    return None if value == "" else value


JsonNumber: Final = BeforeValidator(_json_number)
"""Goes last in an Annotated, or the schema loses its limits."""
Storable: Final = AfterValidator(_storable)

Whole = Annotated[int, JsonNumber]
Text = Annotated[str, Field(json_schema_extra={"pattern": NO_NUL}), Storable]
"""Any text that a database can keep."""


def field_error(field: str, sentence: str) -> PydanticCustomError:
    """A rule that several fields share is broken; `field` is the one to mend."""
    told = {"field": sendable(field), "sentence": sendable(sentence)}
    return PydanticCustomError("rule", "{sentence}", told)


def sendable(text: str) -> str:
    """A name that was sent may hold half a surrogate pair, which no answer can."""
    return text.encode(errors="replace").decode()
