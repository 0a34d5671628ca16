"""What templates can call: comparisons, texts, dates, chance."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Final
from uuid import UUID

import msgspec

from contract.templates import LONG_FORMAT, UnreadableDateError, format_date, is_date, read_date

Value = object
"""A text, a number, a truth value, a list, a mapping, or None."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Clock and chance; passed in, so that the same template gives the same text."""

    now: datetime
    random: Random


Function = Callable[[Sequence[Value], Surroundings], Value]
_MOST_DIGITS: Final = 9
"""The longest place in a list."""
_MOST_PARTS: Final = 5_000
"""The most parts that a text is split into."""
_MOST_DATE: Final = 500
"""The longest date or format."""


class ArgumentError(Exception):
    """An argument is not what a function needs; says which, and never its value.

    Values may be secrets, and readers of notifications see the sentence.
    """


def is_truthy(value: Value) -> bool:
    """Whether a value counts as true: 0, empty text, an empty list and nothing do not."""
    return bool(value)


def to_text(value: Value) -> str:
    """A value as it is written into a text."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
        case list() | tuple():
            return ",".join(map(to_text, value))
        case _:
            return str(value)


def _argument(given: Sequence[Value], place: int) -> Value:
    return given[place] if place < len(given) else None


def _number(value: Value, place: str) -> float:
    if isinstance(value, bool | int | float):
        return float(value)
    try:
        return float(to_text(value))
    except ValueError:
        raise ArgumentError(f"{place} is no number") from None


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_LEFT: Final = "left side"
_RIGHT: Final = "right side"


def _equals(left: Value, right: Value) -> bool:
    if _is_number(left) or _is_number(right):
        try:
            return _number(left, _LEFT) == _number(right, _RIGHT)
        except ArgumentError:
            return False
    return left == right or to_text(left) == to_text(right)


_COMPARISONS: Final[Mapping[str, Callable[[Value, Value], bool]]] = {
    "==": _equals,
    "===": _equals,
    "!=": lambda left, right: not _equals(left, right),
    "!==": lambda left, right: not _equals(left, right),
    "<": lambda left, right: _number(left, _LEFT) < _number(right, _RIGHT),
    "<=": lambda left, right: _number(left, _LEFT) <= _number(right, _RIGHT),
    ">": lambda left, right: _number(left, _LEFT) > _number(right, _RIGHT),
    ">=": lambda left, right: _number(left, _LEFT) >= _number(right, _RIGHT),
}


def _comparing(operator: str, *, negated: bool = False) -> Function:
    compare = _COMPARISONS[operator]
    return lambda given, _: compare(_argument(given, 0), _argument(given, 1)) is not negated


def _compare(given: Sequence[Value], _: Surroundings) -> Value:
    operator = to_text(_argument(given, 1))
    if operator not in _COMPARISONS:
        raise ArgumentError(f"operator is none of {', '.join(_COMPARISONS)}")
    return _COMPARISONS[operator](_argument(given, 0), _argument(given, 2))


def _contains(given: Sequence[Value], _: Surroundings) -> Value:
    whole, part = _argument(given, 0), _argument(given, 1)
    if isinstance(whole, list | tuple):
        # Once, not for each item.
        part = to_text(part) if isinstance(part, list | tuple | Mapping) else part
        return any(_equals(item, part) for item in whole)
    if isinstance(whole, Mapping):
        return to_text(part) in whole
    return to_text(part) in to_text(whole)


def _default(given: Sequence[Value], _: Surroundings) -> Value:
    return next((value for value in given if value not in (None, "")), None)


def _whole(given: Sequence[Value], place: int) -> int:
    number = _number(_argument(given, place), f"argument {place + 1}")
    if not number.is_integer():
        raise ArgumentError(f"argument {place + 1} is no whole number")
    return int(number)


def _if_nth(given: Sequence[Value], _: Surroundings) -> Value:
    every, number = _whole(given, 0), _whole(given, 1)
    return every != 0 and number % every == 0


def _tag_value(given: Sequence[Value], _: Surroundings) -> Value:
    """The value of the first tag `key:value` or `key=value`, or what stands for none."""
    tags, key = _argument(given, 0), to_text(_argument(given, 1))
    starts = (f"{key}:", f"{key}=")
    for tag in map(to_text, tags if isinstance(tags, list | tuple) else ()):
        if tag.startswith(starts):
            return tag[len(key) + 1 :]
    return _argument(given, 2)


def _replace(given: Sequence[Value], _: Surroundings) -> Value:
    text, old, new = (to_text(_argument(given, place)) for place in range(3))
    return text.replace(old, new, 1) if old else text


def _split(given: Sequence[Value], _: Surroundings) -> Value:
    text, separator = to_text(_argument(given, 0)), to_text(_argument(given, 1))
    if (text.count(separator) if separator else len(text)) >= _MOST_PARTS:
        raise ArgumentError(f"argument 1 has {_MOST_PARTS} parts or more")
    parts = text.split(separator) if separator else list(text)
    if len(given) < 3:
        return parts
    place = _whole(given, 2)
    return parts[place] if -len(parts) <= place < len(parts) else None


def _date(given: Sequence[Value], around: Surroundings) -> Value:
    """A date in a format; a single argument is a date if it can be read as one."""
    texts = [to_text(value) for value in given[:2]]
    if any(len(text) > _MOST_DATE for text in texts):
        raise ArgumentError(f"date or format is longer than {_MOST_DATE} characters")
    try:
        match texts:
            case [text, pattern]:
                return format_date(read_date(text, around.now), pattern)
            case [text] if is_date(text, around.now):
                return format_date(read_date(text, around.now), LONG_FORMAT)
            case [pattern]:
                return format_date(around.now, pattern)
            case _:
                return format_date(around.now, LONG_FORMAT)
    except UnreadableDateError:
        raise ArgumentError("date cannot be read") from None


def _lookup(given: Sequence[Value], _: Surroundings) -> Value:
    return find_item(_argument(given, 0), to_text(_argument(given, 1)))


def find_item(whole: Value, name: str) -> Value:
    """An item of a list or a mapping. None: there is none."""
    if isinstance(whole, Mapping):
        return whole.get(name)
    if isinstance(whole, list | tuple):
        if name == "length":
            return len(whole)
        is_place = name.isdecimal() and len(name) <= _MOST_DIGITS
        return whole[int(name)] if is_place and int(name) < len(whole) else None
    return len(whole) if isinstance(whole, str) and name == "length" else None


def _json(given: Sequence[Value], _: Surroundings) -> Value:
    return msgspec.json.encode(_argument(given, 0)).decode()


def _uuid(_: Sequence[Value], around: Surroundings) -> Value:
    return str(UUID(int=around.random.getrandbits(128), version=4))


PREDICATES: Final[Mapping[str, Function]] = {
    "if": lambda given, _: is_truthy(_argument(given, 0)),
    "unless": lambda given, _: not is_truthy(_argument(given, 0)),
    "eq": _comparing("=="),
    "is": _comparing("=="),
    "isnt": _comparing("!="),
    "gt": _comparing(">"),
    "gte": _comparing(">="),
    "lt": _comparing("<"),
    "lte": _comparing("<="),
    "unlessEq": _comparing("==", negated=True),
    "unlessGt": _comparing(">", negated=True),
    "unlessGteq": _comparing(">=", negated=True),
    "unlessLt": _comparing("<", negated=True),
    "unlessLteq": _comparing("<=", negated=True),
    "compare": _compare,
    "and": lambda given, _: all(map(is_truthy, given)),
    "or": lambda given, _: any(map(is_truthy, given)),
    "not": lambda given, _: not is_truthy(_argument(given, 0)),
    "neither": lambda given, _: not any(map(is_truthy, given)),
    "isTruthy": lambda given, _: is_truthy(_argument(given, 0)),
    "isFalsey": lambda given, _: not is_truthy(_argument(given, 0)),
    "contains": _contains,
    "has": _contains,
    "startsWith": lambda given, _: to_text(_argument(given, 0)).startswith(
        to_text(_argument(given, 1))
    ),
    "ifEven": lambda given, _: _whole(given, 0) % 2 == 0,
    "ifOdd": lambda given, _: _whole(given, 0) % 2 == 1,
    "ifNth": _if_nth,
}
"""Conditions: a block of one chooses between its parts; as a value they are true or false."""
FUNCTIONS: Final[Mapping[str, Function]] = {
    **PREDICATES,
    "$UUID": _uuid,
    "$RANDOM_NUMBER": lambda _, around: around.random.randint(0, 10_000),
    "tagValue": _tag_value,
    "replace": _replace,
    "split": _split,
    "default": _default,
    "date": _date,
    "moment": _date,
    "year": lambda _, around: around.now.year,
    "lookup": _lookup,
    "json": _json,
}
