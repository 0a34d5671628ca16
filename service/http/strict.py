"""What people send, read strictly: no guesses, no conversions, unknown fields passed over."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

NO_NUL: Final = r"^[^\x00]*$"


class Strict(BaseModel):
    """A frozen value in a request; camelCase outside.

    Unknown fields are passed over, because clients of the established service send back what
    they were given (`id`, zero dates, fields of later versions).
    """

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="ignore",
        allow_inf_nan=False,
        alias_generator=to_camel,
        use_attribute_docstrings=True,
    )


class Shown(BaseModel):
    """A frozen value in an answer; camelCase outside."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
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
Number = Annotated[float, JsonNumber]
Text = Annotated[str, Field(json_schema_extra={"pattern": NO_NUL}), Storable]
"""Any text that a database can keep."""


def field_error(field: str, sentence: str) -> PydanticCustomError:
    """A rule that several fields share is broken; `field` is the one to mend."""
    return PydanticCustomError("rule", "{sentence}", {"field": field, "sentence": sentence})
