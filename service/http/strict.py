"""What people send, read strictly: no guesses, no conversions, unknown fields passed over."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from contract.near_names import near_name
from service.http.described import Described

NO_NUL: Final = r"^[^\x00]*$"


_SLIP: Final = 0.85
"""So much alike are two names of which one is a slip of the pen."""
_MOST_UNKNOWN: Final = 20
_MOST_LETTERS: Final = 60
"""Likeness takes time, and a body may have a hundred thousand fields with names of any length."""


class Strict(Described):
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
        if len(name) <= _MOST_LETTERS and (meant := near_name(name, known, alike=_SLIP)):
            return name, meant
    return None


class Shown(Described):
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
