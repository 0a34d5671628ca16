"""Variables as people send and see them."""

from typing import Annotated, Final

from pydantic import AfterValidator, Field

from service.http.strict import Shown, Strict, Text, field_error, judged_by, spelled
from service.variables.rules import (
    KEY_PATTERN,
    KEY_WORDS,
    MAX_KEY_LETTERS,
    MAX_VALUE_BYTES,
    twice,
    value_problem,
)
from service.vault.texts import Untold

MAX_OF_ONE: Final = 50
"""Variables of one check or group."""

Key = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_KEY_LETTERS,
        json_schema_extra={"pattern": KEY_PATTERN, "examples": ["API_URL"]},
    ),
    spelled(KEY_PATTERN, KEY_WORDS),
]
"""What templates and scripts call it by."""
Value = Annotated[Text, Field(max_length=MAX_VALUE_BYTES), judged_by(value_problem), Untold]


class VariableValue(Strict):
    """What a variable is, apart from its key."""

    value: Value
    """Empty, for a secret that stays one, or `*********`: it keeps its value."""
    locked: bool = False
    """Shown only to those who may write; scrubbed from results like a secret."""
    secret: bool = False
    """Never shown again, to nobody, and scrubbed from results."""


class VariableWrite(VariableValue):
    """A variable as people send it."""

    key: Key
    value: Value
    """Of a secret: not empty."""


class VariableChange(VariableValue):
    """A variable that takes the place of one that is there."""

    key: Key | None = None
    """Another one: the variable is renamed. Null or left out: it keeps its key."""


class EnvironmentVariable(VariableValue):
    """A variable of a check or a group."""

    key: Key


def _each_once(given: list[EnvironmentVariable] | None) -> list[EnvironmentVariable]:
    if key := twice(one.key for one in given or ()):
        raise field_error("", f"holds {key} twice; use each key once")
    return given or []


EnvironmentVariables = Annotated[
    Annotated[list[EnvironmentVariable], Field(max_length=MAX_OF_ONE)] | None,
    AfterValidator(_each_once),
]
"""The field of checks and groups; null is an empty one."""


class VariableShown(Shown):
    """A variable; a secret's value is empty.

    That of a locked one is `*********` for keys that only read, and so is, in a list, one that
    cannot be read any more.
    """

    key: str
    value: str
    locked: bool
    secret: bool
