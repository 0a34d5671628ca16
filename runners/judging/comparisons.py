"""Fourteen comparisons hold an actual value against a target, which is always text.

A number compares with a target that is one (`200`, `0.5`, `1e3`), true, false and null with their
names, text literally, objects and arrays with the JSON of the target.
JSON may hold numbers that no float holds (`1e400`) and lone surrogates; both are values as others.
Values that cannot be compared fail the assertion with a sentence, in negative comparisons too: a
mistake in a check never makes it pass.
"""

import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final

import msgspec

from contract.assertions import Comparison

Json = dict[str, Any] | list[Any] | str | int | float | bool | None

Compare = Callable[[Json, str], bool]


class IncomparableError(ValueError):
    """Value and target do not go together; the text says why."""


def render_value(value: Json) -> str:
    """A value as its reader writes it: text bare, whole numbers without a point, else JSON."""
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return write_json(value)


def read_json(text: str | bytes | msgspec.Raw) -> Json:
    """Read JSON; a number that no float holds is a whole number, a lone surrogate a character.

    Raises:
        ValueError: it is not JSON; the text says where.
    """
    try:
        document: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError) as problem:
        refusal = str(problem)
    else:
        return document
    # The standard library takes both, at a quarter of the speed.
    try:
        document = json.loads(
            bytes(text) if isinstance(text, msgspec.Raw) else text,
            parse_float=_read_float,
            parse_int=_read_int,
            parse_constant=_refuse_constant,
        )
    except ValueError:
        raise ValueError(refusal) from None
    return document


def write_json(value: Json) -> str:
    """A value as JSON, lone surrogates included."""
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeError, OverflowError, msgspec.MsgspecError):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON")


MAX_EXACT_DIGITS: Final = 4000
"""Larger numbers count as infinite; Python itself writes whole numbers of 4,300 digits at most."""


def _read_int(text: str) -> float | int:
    return int(text) if len(text) <= MAX_EXACT_DIGITS else float(text)


def _read_float(text: str) -> float | int:
    """A float, or the whole number that is too large for one."""
    number = float(text)
    if math.isfinite(number):
        return number
    try:
        exact = Decimal(text)
    except InvalidOperation:  # an exponent of more than 18 digits
        return number
    return int(exact) if exact.adjusted() < MAX_EXACT_DIGITS else number


MAX_NUMBER_CHARS: Final = 400
"""No number that a check compares is longer; and longer texts must not be remembered."""


def parse_number(text: str) -> float | int | None:
    """The number that a text is. None: it is none."""
    return _parse_number(text) if len(text) <= MAX_NUMBER_CHARS else None


@lru_cache(maxsize=1024)
def _parse_number(text: str) -> float | int | None:
    try:
        if "_" in text:
            return None
        return int(text)
    except ValueError:
        pass
    try:
        # Without a digit it is one of Python's words: inf, nan.
        return _read_float(text) if any(map(str.isdigit, text)) else None
    except ValueError:
        return None


def is_empty(value: Json) -> bool:
    """Null, and text, arrays and objects without content; numbers and truth values never."""
    return value is None or (isinstance(value, (str, list, dict)) and not value)


def equals(value: Json, target: str) -> bool:
    """Whether the value is what the target says."""
    if isinstance(value, str):
        return value == target
    if value is None or isinstance(value, bool):
        return render_value(value) == target.strip()
    if isinstance(value, (int, float)):
        return value == _number_target(target)
    return _are_equal(value, _json_target(target, name_kind(value)))


def is_greater(value: Json, target: str) -> bool:
    """Whether the value, a number, is above the target."""
    return _number_value(value) > _number_target(target)


def is_less(value: Json, target: str) -> bool:
    """Whether the value, a number, is below the target."""
    return _number_value(value) < _number_target(target)


def has_key(value: Json, target: str) -> bool:
    """Whether the object has a member of that name."""
    if not isinstance(value, dict):
        raise IncomparableError(f"only an object has keys, and this is {name_kind(value)}")
    return target in value


def has_value(value: Json, target: str) -> bool:
    """Whether a member of the object or an element of the array is what the target says."""
    if not isinstance(value, (dict, list)):
        raise IncomparableError(
            f"only an object or an array has values, and this is {name_kind(value)}"
        )
    return any(_may_equal(item, target) for item in _items(value))


def contains(value: Json, target: str) -> bool:
    """Whether the text has the target in it, or the array an element that it names."""
    if isinstance(value, list):
        return any(_may_equal(item, target) for item in value)
    if value is None or isinstance(value, dict):
        raise IncomparableError(
            f"only text, numbers and arrays contain something, and this is {name_kind(value)}"
        )
    return target in render_value(value)


def name_kind(value: Json) -> str:
    """What a value is, in words."""
    return _KINDS[type(value)]


def _negate(compare: Compare) -> Compare:
    return lambda value, target: not compare(value, target)


COMPARE: Final[Mapping[Comparison, Compare]] = {
    Comparison.EQUALS: equals,
    Comparison.NOT_EQUALS: _negate(equals),
    Comparison.HAS_KEY: has_key,
    Comparison.NOT_HAS_KEY: _negate(has_key),
    Comparison.HAS_VALUE: has_value,
    Comparison.NOT_HAS_VALUE: _negate(has_value),
    Comparison.IS_EMPTY: lambda value, _: is_empty(value),
    Comparison.NOT_EMPTY: lambda value, _: not is_empty(value),
    Comparison.GREATER_THAN: is_greater,
    Comparison.LESS_THAN: is_less,
    Comparison.CONTAINS: contains,
    Comparison.NOT_CONTAINS: _negate(contains),
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
    number = parse_number(value) if isinstance(value, str) else None
    if number is None:
        raise IncomparableError(f"only numbers are greater or less, and this is {name_kind(value)}")
    return number


def _number_target(target: str) -> float | int:
    number = parse_number(target)
    if number is None:
        raise IncomparableError("the value is a number, and the target is not")
    return number


def _json_target(target: str, kind: str) -> Json:
    try:
        return read_json(target)
    except ValueError:
        raise IncomparableError(f"the value is {kind}, and the target is not JSON") from None


def _may_equal(item: Json, target: str) -> bool:
    """Whether they are equal; a target of another kind is different, not a mistake."""
    try:
        return equals(item, target)
    except IncomparableError:
        return False


def _items(value: dict[str, Json] | list[Json]) -> list[Json]:
    return list(value.values()) if isinstance(value, dict) else value


def _are_equal(one: Json, other: Json) -> bool:
    """Equal as JSON: 1 is 1.0, but true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_are_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_are_equal, one, other))
    return one == other
