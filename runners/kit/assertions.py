"""What a check asserts, held against what was seen; every error is a failed assertion.

- JSON sources: `property` is a JSONPath; empty means `$`, the whole document. When it leads to
  several values, the comparison must hold for each of them.
- Text sources: `property` is a regular expression; its first capture group is compared, the whole
  match when it has none, the whole text when it is empty.
- HEADERS: `property` is the header's name in any case, `regex` picks a part of its value; without
  a name the headers are one object, for HAS_KEY and HAS_VALUE. Values of sensitive headers are
  compared but never shown.
- LATENCY: `property` is avg, min, max or stdDev.
- Where there is no value (no such header, no match, a path that leads nowhere) IS_NULL and
  IS_EMPTY hold and everything else fails, NOT_EQUALS and its like too: a misspelt path must not
  be green.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from contract.assertions import Assertion, AssertionResult, Comparison, Source
from runners.kit.comparisons import (
    COMPARE,
    HOLDS_FOR_NOTHING,
    IncomparableError,
    number_in,
    text_of,
)
from runners.kit.json_value import Json
from runners.kit.observation import Fact, Fields, JsonText, Number, Numbers, Text
from runners.kit.patterns import BadPatternError, as_bytes, first_group
from runners.kit.secrets.sensitive import HIDDEN, SENSITIVE_HEADERS

ACTUAL_LIMIT_BYTES: Final = 10 * 1024
QUOTE_LIMIT_CHARS: Final = 200

_Documents = dict[Source, Json]
"""JSON that was parsed for an earlier assertion of the same run."""


def evaluate(
    assertions: Sequence[Assertion], facts: Mapping[Source, Fact]
) -> tuple[AssertionResult, ...]:
    """Hold every assertion against the facts, top to bottom."""
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
            error = _of_silence(assertion, facts.get(assertion.source)) or error
    except _UnanswerableError as problem:
        error, actual = f"{_subject(assertion)} cannot be looked at: {problem}.", None
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
            return _part(assertion.property, value)
        case JsonText() as fact:
            return _json_values(assertion, fact, documents)
        case Fields(values):
            return _header(assertion, values)
        case Numbers(values):
            return _named_number(assertion.property, values)
        case _:
            raise _UnanswerableError("this run has nothing of the kind")


def _part(pattern: str | None, text: str) -> Sequence[str]:
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
    from runners.kit.jsonpath import BadPathError, find_values  # noqa: PLC0415

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
        raise _UnanswerableError(f"it is no JSON: {problem}") from None
    return document


def _header(assertion: Assertion, headers: Mapping[str, str]) -> Sequence[Json]:
    if not assertion.property:
        return (_shown_headers(headers),)
    value = headers.get(assertion.property.strip().lower())
    return () if value is None else _part(assertion.regex, value)


def _shown_headers(headers: Mapping[str, str]) -> dict[str, Json]:
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
        return _of_nothing(assertion), None
    holds = COMPARE[assertion.comparison]
    for value in values:
        try:
            if holds(value, assertion.target):
                continue
            reason = ""
        except IncomparableError as problem:
            reason = f" ({problem})"
        actual = _shown(assertion, value)
        return f"{_expected(assertion)}, but it is {_quoted(actual)}{reason}.", _cut(actual)
    return None, _cut(_shown(assertion, values[0] if len(values) == 1 else list(values)))


def _shown(assertion: Assertion, value: Json) -> str:
    if (
        assertion.source is Source.HEADERS
        and assertion.property.strip().lower() in SENSITIVE_HEADERS
    ):
        return HIDDEN
    return text_of(value)


def _of_nothing(assertion: Assertion) -> str | None:
    if assertion.comparison in HOLDS_FOR_NOTHING:
        return None
    return f"{_expected(assertion)}, but there is no such value."


def _of_silence(assertion: Assertion, fact: Fact | None) -> str | None:
    """The sentence on a text that is empty for a known reason. None: it is not."""
    if not isinstance(fact, Text) or fact.value or fact.empty_because is None:
        return None
    return f"{_expected(assertion)}, but {fact.empty_because}."


def _expected(assertion: Assertion) -> str:
    wish = _WISHES[assertion.comparison]
    target = f" {_quoted(assertion.target)}" if assertion.comparison not in _WITHOUT_TARGET else ""
    return f"{_subject(assertion)} should {wish}{target}"


def _subject(assertion: Assertion) -> str:
    name = assertion.property
    return f"{assertion.source} {_quoted(name)}" if name else assertion.source


def _quoted(text: str) -> str:
    """Short enough for a sentence; the whole of it stands in the assertion's own fields."""
    if number_in(text) is not None:
        return text
    shown = text if len(text) <= QUOTE_LIMIT_CHARS else f"{text[:QUOTE_LIMIT_CHARS]}…"
    return f"`{shown}`"


def _cut(text: str) -> str:
    if len(text) <= ACTUAL_LIMIT_BYTES // 4:
        return text
    body = as_bytes(text)
    if len(body) <= ACTUAL_LIMIT_BYTES:
        return text
    return body[:ACTUAL_LIMIT_BYTES].decode("utf-8", "ignore")


_WITHOUT_TARGET: Final = frozenset(
    {Comparison.IS_EMPTY, Comparison.NOT_EMPTY, Comparison.IS_NULL, Comparison.NOT_NULL}
)
_WISHES: Final[Mapping[Comparison, str]] = {
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
