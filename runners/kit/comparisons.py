"""The fourteen comparisons of an actual value with a target, which is always text.

A number compares with a target that is one (`200`, `0.5`, `1e3`), true, false and null with their
names, text literally, objects and arrays with the JSON of the target.
What cannot be compared raises: a failed assertion with a sentence, for the negative comparisons
too, so that a mistake in a check never makes it green.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from contract.assertions import Comparison
from runners.kit.json_value import Json

Compare = Callable[[Json, str], bool]


class IncomparableError(ValueError):
    """Value and target do not go together; the text says why."""


def text_of(value: Json) -> str:
    """A value as its reader writes it: text bare, whole numbers without a point, else JSON."""
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return msgspec.json.encode(value).decode()


MAX_NUMBER_CHARS: Final = 400
"""No number that a check compares is longer; and longer texts must not be remembered."""


def number_in(text: str) -> float | int | None:
    """The number that a text is. None: it is none."""
    return _number_in(text) if len(text) <= MAX_NUMBER_CHARS else None


@lru_cache(maxsize=1024)
def _number_in(text: str) -> float | int | None:
    try:
        if "_" in text:
            return None
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def is_empty(value: Json) -> bool:
    """Null, and text, arrays and objects without content; numbers and truth values never."""
    return value is None or (isinstance(value, (str, list, dict)) and not value)


def equals(value: Json, target: str) -> bool:
    """Whether the value is what the target says."""
    if isinstance(value, str):
        return value == target
    if value is None or isinstance(value, bool):
        return text_of(value) == target.strip()
    if isinstance(value, (int, float)):
        return value == _number_target(target)
    return _same(value, _json_target(target, kind_of(value)))


def is_greater(value: Json, target: str) -> bool:
    """Whether the value, a number, is above the target."""
    return _number_value(value) > _number_target(target)


def is_less(value: Json, target: str) -> bool:
    """Whether the value, a number, is below the target."""
    return _number_value(value) < _number_target(target)


def has_key(value: Json, target: str) -> bool:
    """Whether the object has a member of that name."""
    if not isinstance(value, dict):
        raise IncomparableError(f"only an object has keys, and this is {kind_of(value)}")
    return target in value


def has_value(value: Json, target: str) -> bool:
    """Whether a member of the object or an element of the array is what the target says."""
    if not isinstance(value, (dict, list)):
        raise IncomparableError(
            f"only an object or an array has values, and this is {kind_of(value)}"
        )
    return any(_may_equal(item, target) for item in _items(value))


def contains(value: Json, target: str) -> bool:
    """Whether the text has the target in it, or the array an element that it names."""
    if isinstance(value, list):
        return any(_may_equal(item, target) for item in value)
    if value is None or isinstance(value, dict):
        raise IncomparableError(
            f"only text, numbers and arrays contain something, and this is {kind_of(value)}"
        )
    return target in text_of(value)


def kind_of(value: Json) -> str:
    """What a value is, in words."""
    return _KINDS[type(value)]


def _not(compare: Compare) -> Compare:
    return lambda value, target: not compare(value, target)


COMPARE: Final[Mapping[Comparison, Compare]] = {
    Comparison.EQUALS: equals,
    Comparison.NOT_EQUALS: _not(equals),
    Comparison.HAS_KEY: has_key,
    Comparison.NOT_HAS_KEY: _not(has_key),
    Comparison.HAS_VALUE: has_value,
    Comparison.NOT_HAS_VALUE: _not(has_value),
    Comparison.IS_EMPTY: lambda value, _: is_empty(value),
    Comparison.NOT_EMPTY: lambda value, _: not is_empty(value),
    Comparison.GREATER_THAN: is_greater,
    Comparison.LESS_THAN: is_less,
    Comparison.CONTAINS: contains,
    Comparison.NOT_CONTAINS: _not(contains),
    Comparison.IS_NULL: lambda value, _: value is None,
    Comparison.NOT_NULL: lambda value, _: value is not None,
}
"""How each comparison decides; a test holds it complete."""

HOLDS_FOR_NOTHING: Final = frozenset({Comparison.IS_NULL, Comparison.IS_EMPTY})
"""What holds where there is no value at all; every other comparison fails there."""

_KINDS: Final[Mapping[type, str]] = {
    dict: "an object",
    list: "an array",
    str: "text",
    int: "a number",
    float: "a number",
    bool: "a truth value",
    type(None): "null",
}


def _number_value(value: Json) -> float | int:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    number = number_in(value) if isinstance(value, str) else None
    if number is None:
        raise IncomparableError(f"only numbers are greater or less, and this is {kind_of(value)}")
    return number


def _number_target(target: str) -> float | int:
    number = number_in(target)
    if number is None:
        raise IncomparableError("the value is a number, and the target is none")
    return number


def _json_target(target: str, kind: str) -> Json:
    try:
        parsed: Json = msgspec.json.decode(target)
    except (msgspec.DecodeError, UnicodeError):
        raise IncomparableError(f"the value is {kind}, and the target is no JSON") from None
    return parsed


def _may_equal(item: Json, target: str) -> bool:
    """As `equals`, where a target of another kind is simply different."""
    try:
        return equals(item, target)
    except IncomparableError:
        return False


def _items(value: dict[str, Json] | list[Json]) -> list[Json]:
    return list(value.values()) if isinstance(value, dict) else value


def _same(one: Json, other: Json) -> bool:
    """Equal as JSON: 1 is 1.0, but true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other
