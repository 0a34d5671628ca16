"""Evaluates assertions on facts; every error is a failed assertion.

- JSON sources: `property` is a JSONPath; empty means `$`, the whole document. When it leads to
  several values, the comparison must hold for each of them.
- Text sources: `property` is a regular expression; its first capture group is compared, the whole
  match when it has none, the whole text when it is empty.
- HEADERS: `property` is the header's name in any case, `regex` picks a part of its value; without
  a name the headers are one object, for HAS_KEY and HAS_VALUE. Values of sensitive headers are
  compared but never shown.
- LATENCY: `property` is avg, min, max or stdDev.
- Where there is no value (no such header, no match, a path that leads nowhere) IS_NULL and
  IS_EMPTY hold and everything else fails, NOT_EQUALS too: a misspelt path must not pass.

Fourteen comparisons hold an actual value against a target, which is always text.
A number compares with a target that is one (`200`, `0.5`, `1e3`), true, false and null with their
names, text literally, objects and arrays with the JSON of the target.
Values that cannot be compared fail the assertion with a sentence, in negative comparisons too: a
mistake in a check never makes it pass.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
import re2

from contract.assertions import Assertion, AssertionResult, Comparison, Source
from redaction.policy import HIDDEN, SENSITIVE_HEADERS
from runners.runner import Fact, Fields, JsonText, Number, Numbers, Text

Json = dict[str, Any] | list[Any] | str | int | float | bool | None


ACTUAL_LIMIT_BYTES: Final = 10 * 1024
QUOTE_LIMIT_CHARS: Final = 200

_Documents = dict[Source, Json]
"""JSON that was parsed for an earlier assertion of the same run."""


def evaluate(
    assertions: Sequence[Assertion], facts: Mapping[Source, Fact]
) -> tuple[AssertionResult, ...]:
    """Evaluate every assertion on the facts, in the check's order."""
    if not assertions:
        return ()
    documents: _Documents = {}
    return tuple(
        _evaluate(assertion, order, facts, documents) for order, assertion in enumerate(assertions)
    )


class _UnanswerableError(ValueError):
    """There is no value to compare, for a reason that its text gives."""


def _evaluate(
    assertion: Assertion, order: int, facts: Mapping[Source, Fact], documents: _Documents
) -> AssertionResult:
    try:
        values = _values(assertion, facts, documents)
        error, actual = _compare(assertion, values)
        if error is not None:
            error = _explain_empty(assertion, facts.get(assertion.source)) or error
    except _UnanswerableError as problem:
        error, actual = f"{_subject(assertion)} cannot be evaluated: {problem}.", None
    except RecursionError:
        error, actual = f"{_subject(assertion)} is nested too deeply to be compared.", None
    return AssertionResult(
        source=assertion.source,
        comparison=assertion.comparison,
        property=assertion.property,
        target=assertion.target,
        regex=assertion.regex,
        order=order,
        actual=actual,
        error=error,
    )


def _values(
    assertion: Assertion, facts: Mapping[Source, Fact], documents: _Documents
) -> Sequence[Json]:
    match facts.get(assertion.source):
        case Number(value):
            return (value,)
        case Text(value):
            return _extract(assertion.property, value)
        case JsonText() as fact:
            return _json_values(assertion, fact, documents)
        case Fields(values):
            return _header_values(assertion, values)
        case Numbers(values):
            return _named_number(assertion.property, values)
        case _:
            raise _UnanswerableError("this run recorded no such value")


def _extract(pattern: str | None, text: str) -> Sequence[str]:
    if not pattern:
        return (text,)
    try:
        part = first_group(pattern, text)
    except BadPatternError as problem:
        raise _UnanswerableError(f"the regular expression is wrong: {problem}") from None
    return () if part is None else (part,)


def _json_values(assertion: Assertion, fact: JsonText, documents: _Documents) -> Sequence[Json]:
    if assertion.source not in documents:
        documents[assertion.source] = _parse(fact)
    # Imported here: it costs 4 MB and 40 ms, and an agent may never see a JSONPath.
    from runners.judging.jsonpath import BadPathError, find_values  # noqa: PLC0415

    try:
        return find_values(assertion.property or "$", documents[assertion.source])
    except BadPathError as problem:
        raise _UnanswerableError(f"the JSONPath is wrong: {problem}") from None


def _parse(fact: JsonText) -> Json:
    if fact.unreadable_because is not None:
        raise _UnanswerableError(fact.unreadable_because.rstrip("."))
    try:
        document: Json = msgspec.json.decode(fact.text)
    except (msgspec.DecodeError, UnicodeError) as problem:
        raise _UnanswerableError(f"it is not JSON: {problem}") from None
    return document


def _header_values(assertion: Assertion, headers: Mapping[str, str]) -> Sequence[Json]:
    if not assertion.property:
        return (_hide_headers(headers),)
    value = headers.get(assertion.property.strip().lower())
    return () if value is None else _extract(assertion.regex, value)


def _hide_headers(headers: Mapping[str, str]) -> dict[str, Json]:
    return {name: HIDDEN if name in SENSITIVE_HEADERS else value for name, value in headers.items()}


def _named_number(name: str, numbers: Mapping[str, float]) -> Sequence[Json]:
    if name in numbers:
        return (numbers[name],)
    if not numbers:
        raise _UnanswerableError("nothing was measured")
    raise _UnanswerableError(f"there is no {name or 'property'}, only {', '.join(numbers)}")


def _compare(assertion: Assertion, values: Sequence[Json]) -> tuple[str | None, str | None]:
    """Why the assertion does not hold, if so, and what was compared."""
    if not values:
        return _explain_missing(assertion), None
    holds = COMPARE[assertion.comparison]
    for value in values:
        try:
            if holds(value, assertion.target):
                continue
            reason = ""
        except IncomparableError as problem:
            reason = f" ({problem})"
        actual = _render(assertion, value)
        return (
            f"{_describe_target(assertion)}, but it is {_quote(actual)}{reason}.",
            _clip(actual),
        )
    return None, _clip(_render(assertion, values[0] if len(values) == 1 else list(values)))


def _render(assertion: Assertion, value: Json) -> str:
    if (
        assertion.source is Source.HEADERS
        and assertion.property.strip().lower() in SENSITIVE_HEADERS
    ):
        return HIDDEN
    return render_value(value)


def _explain_missing(assertion: Assertion) -> str | None:
    if assertion.comparison in HOLDS_FOR_NOTHING:
        return None
    return f"{_describe_target(assertion)}, but there is no such value."


def _explain_empty(assertion: Assertion, fact: Fact | None) -> str | None:
    """The sentence on a text that is empty for a known reason. None: it is not."""
    if not isinstance(fact, Text) or fact.value or fact.empty_because is None:
        return None
    return f"{_describe_target(assertion)}, but {fact.empty_because}."


def _describe_target(assertion: Assertion) -> str:
    expectation = _EXPECTATIONS[assertion.comparison]
    target = f" {_quote(assertion.target)}" if assertion.comparison not in _WITHOUT_TARGET else ""
    return f"{_subject(assertion)} should {expectation}{target}"


def _subject(assertion: Assertion) -> str:
    name = assertion.property
    return f"{assertion.source} {_quote(name)}" if name else assertion.source


def _quote(text: str) -> str:
    """Short enough for a sentence; the whole of it stands in the assertion's own fields."""
    if parse_number(text) is not None:
        return text
    shown = text if len(text) <= QUOTE_LIMIT_CHARS else f"{text[:QUOTE_LIMIT_CHARS]}…"
    return f"`{shown}`"


def _clip(text: str) -> str:
    if len(text) <= ACTUAL_LIMIT_BYTES // 4:
        return text
    body = encode_text(text)
    if len(body) <= ACTUAL_LIMIT_BYTES:
        return text
    return body[:ACTUAL_LIMIT_BYTES].decode("utf-8", "ignore")


_WITHOUT_TARGET: Final = frozenset(
    {Comparison.IS_EMPTY, Comparison.NOT_EMPTY, Comparison.IS_NULL, Comparison.NOT_NULL}
)
_EXPECTATIONS: Final[Mapping[Comparison, str]] = {
    Comparison.EQUALS: "equal",
    Comparison.NOT_EQUALS: "not equal",
    Comparison.HAS_KEY: "have the key",
    Comparison.NOT_HAS_KEY: "not have the key",
    Comparison.HAS_VALUE: "have the value",
    Comparison.NOT_HAS_VALUE: "not have the value",
    Comparison.IS_EMPTY: "be empty",
    Comparison.NOT_EMPTY: "not be empty",
    Comparison.GREATER_THAN: "be greater than",
    Comparison.LESS_THAN: "be less than",
    Comparison.CONTAINS: "contain",
    Comparison.NOT_CONTAINS: "not contain",
    Comparison.IS_NULL: "be null",
    Comparison.NOT_NULL: "not be null",
}
"""What each comparison asks for, after "should"."""


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
    return msgspec.json.encode(value).decode()


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
        parsed: Json = msgspec.json.decode(target)
    except (msgspec.DecodeError, UnicodeError):
        raise IncomparableError(f"the value is {kind}, and the target is not JSON") from None
    return parsed


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


MAX_PATTERN_CHARS: Final = 10_000
_MISSING: Final = "look-around and back-references are not available here"
_MISSING_MARKS: Final = ("invalid perl operator", "invalid escape sequence: \\")


class BadPatternError(ValueError):
    """A pattern that cannot be used; the text says why."""


@lru_cache(maxsize=1024)
def compile_pattern(source: str) -> re.Pattern[bytes]:
    """Compile a pattern for UTF-8 text, or take it from the cache.

    RE2 has no types of its own; its patterns have the interface of `re`.

    Raises:
        BadPatternError: with the reason, RE2's missing features named.
    """
    if len(source) > MAX_PATTERN_CHARS:
        raise BadPatternError(f"it has {len(source)} characters; use at most {MAX_PATTERN_CHARS}")
    options = re2.Options()
    options.log_errors = False
    try:
        pattern: re.Pattern[bytes] = re2.compile(encode_text(source), options)
    except re2.error as problem:
        raise BadPatternError(_reason(problem.args[0])) from None
    return pattern


def first_group(source: str, text: str) -> str | None:
    """The first capture group, or the whole match of a pattern without groups. None: no match.

    Raises:
        BadPatternError: the pattern cannot be used.
    """
    pattern = compile_pattern(source)
    found = pattern.search(encode_text(text))
    if found is None:
        return None
    group = found.group(1 if pattern.groups else 0)
    return None if group is None else group.decode("utf-8", "replace")


def encode_text(text: str) -> bytes:
    """UTF-8 that a lone surrogate does not stop."""
    return text.encode("utf-8", "surrogatepass")


def _reason(problem: bytes) -> str:
    reason = problem.decode("utf-8", "replace")
    return f"{reason} ({_MISSING})" if reason.startswith(_MISSING_MARKS) else reason
