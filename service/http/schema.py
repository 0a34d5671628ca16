"""Base models of request and response bodies, and rules that their fields share."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from contract.suggestions import suggest_name
from service.http.performance.field_descriptions import DocumentedModel

NO_NUL: Final = r"^[^\x00]*$"


_TYPO_LIKENESS: Final = 0.85
"""How alike an unknown name and a known one are to count as a typo; 1 means equal."""
_MOST_UNKNOWN: Final = 20
_MOST_LETTERS: Final = 60
"""Longer names are not compared, nor more names: a body may have 100,000 fields."""


class RequestModel(DocumentedModel):
    """A frozen value in a request; camelCase outside.

    Unknown fields are ignored, because clients of the established service send back what they
    received (`id`, zero dates, fields of later versions). A field whose name is nearly a known one
    is refused as a typo: ignoring it would not do what its sender wants.
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
    def _refuse_typos(cls, body: Any) -> Any:
        if isinstance(body, Mapping) and (found := _find_typo_in(body, cls)):
            field, meant = found
            raise field_error(field, f"is not a known field; did you mean {meant}?")
        return body


def _find_typo_in(body: Mapping[Any, Any], model: type[BaseModel]) -> tuple[str, str] | None:
    known = {info.alias or name for name, info in model.model_fields.items()}
    return find_typo((name for name in body if isinstance(name, str)), known)


def find_typo(names: Iterable[str], known: Collection[str]) -> tuple[str, str] | None:
    """The first name that is nearly a known one, with the known one. None: no name is."""
    unknown = (name for name in names if name not in known)
    for name in islice(unknown, _MOST_UNKNOWN):
        if len(name) <= _MOST_LETTERS and (
            meant := suggest_name(name, known, alike=_TYPO_LIKENESS)
        ):
            return name, meant
    return None


class ResponseModel(DocumentedModel):
    """A frozen value in a response; camelCase outside."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        defer_build=True,
        serialize_by_alias=True,
    )


def _json_number(value: Any) -> Any:
    """Refuse booleans as numbers, and accept `1.0` as an integer, as JSON Schema does."""
    if isinstance(value, bool):
        raise PydanticCustomError("number_type", "must be a number")
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _storable(value: str) -> str:
    """Refuse what no database stores: NUL and lone surrogates."""
    try:
        storable = b"\0" not in value.encode()
    except UnicodeEncodeError:
        storable = False
    if not storable:
        raise PydanticCustomError("unstorable", "contains a NUL or half a surrogate pair")
    return value


def check_pattern(pattern: str, words: str) -> AfterValidator:
    """A validator that refuses other text in words; the pattern stands in the schema too."""
    letters = re.compile(pattern)

    def judge(value: str) -> str:
        if letters.fullmatch(value) is None:
            raise PydanticCustomError("rule", "{sentence}", {"sentence": words})
        return value

    return AfterValidator(judge)


def judged_by(problem_of: Callable[[str], str | None]) -> AfterValidator:
    """A validator that refuses what a rule of the contract refuses, in the rule's words."""

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
"""Refuses booleans as numbers; it must be last in an Annotated, or the schema loses its limits."""
Storable: Final = AfterValidator(_storable)

Whole = Annotated[int, JsonNumber]
Text = Annotated[str, Field(json_schema_extra={"pattern": NO_NUL}), Storable]
"""Any text that a database can store."""


def field_error(field: str, sentence: str) -> PydanticCustomError:
    """The error of a rule that several fields share; `field` is the one to fix."""
    context = {"field": sendable(field), "sentence": sendable(sentence)}
    return PydanticCustomError("rule", "{sentence}", context)


def sendable(text: str) -> str:
    """The text with `?` for lone surrogates, which a request may have and a response may not."""
    return text.encode(errors="replace").decode()
