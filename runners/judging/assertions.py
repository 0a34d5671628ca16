"""Evaluates assertions on facts; every error is a failed assertion.

- JSON sources: `property` is a JSONPath; empty means `$`, the whole document. When it leads to
  several values, the comparison must hold for each of them.
- Text sources: `property` is a regular expression; its first capture group is compared, the whole
  match when it has none, the whole text when it is empty.
- HEADERS: `property` is the header's name, `regex` picks a part of its value; without a name the
  headers are one object, for HAS_KEY and HAS_VALUE. Names have no case (RFC 9110, 5.1). Values of
  sensitive headers are compared but never shown.
- LATENCY: `property` is avg, min, max or stdDev.
- Where there is no value (no such header, no match, a path that leads nowhere) IS_NULL and
  IS_EMPTY hold and everything else fails, NOT_EQUALS too: a misspelt path must not pass.
- Of a text that was longer than the limit, the beginning was read. An assertion that the rest could
  decide otherwise does not hold: NOT_CONTAINS, the absence of a match, a match up to the cut.
"""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final

import msgspec
import re2

from contract.assertions import (
    OF_EQUALITY,
    WITHOUT_TARGET,
    Assertion,
    AssertionResult,
    Comparison,
    Source,
)
from redaction.policy import HIDDEN, SENSITIVE_HEADERS
from runners.judging.comparisons import (
    COMPARE,
    HOLDS_FOR_NOTHING,
    IncomparableError,
    Json,
    parse_number,
    read_json,
    render_value,
    write_json,
)
from runners.runner import Fact, Fields, JsonText, Number, Numbers, Text

ACTUAL_LIMIT_BYTES: Final = 10 * 1024
QUOTE_LIMIT_CHARS: Final = 200

LARGE_CHARS: Final = 1_000_000
"""Only the part that a path begins with is built of longer JSON."""

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


class _UndecidedError(_UnanswerableError):
    """The part of the text that was read does not decide the comparison."""

    def __init__(self, read_bytes: int) -> None:
        super().__init__(
            f"the text is longer than the first {read_bytes} bytes, which were read and do not "
            "decide it"
        )


def _evaluate(
    assertion: Assertion, order: int, facts: Mapping[Source, Fact], documents: _Documents
) -> AssertionResult:
    fact = facts.get(assertion.source)
    try:
        values = _values(assertion, fact, documents)
        error, actual = _compare(assertion, values, fact)
        if error is not None:
            error = _explain_empty(assertion, fact) or error
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


def _values(assertion: Assertion, fact: Fact | None, documents: _Documents) -> Sequence[Json]:
    match fact:
        case Number(value):
            return (value,)
        case Text():
            return _text_values(assertion, fact)
        case JsonText():
            return _json_values(assertion, fact, documents)
        case Fields(values):
            return _header_values(assertion, values)
        case Numbers(values):
            return _named_number(assertion.property, values)
        case _:
            raise _UnanswerableError("this run recorded no such value")


def _text_values(assertion: Assertion, text: Text) -> Sequence[str]:
    if not assertion.property:
        if text.read_bytes is not None and _may_differ(assertion, text.value):
            raise _UndecidedError(text.read_bytes)
        return (text.value,)
    found = _search(assertion.property, text.value)
    if text.read_bytes is not None:
        is_open = assertion.comparison in HOLDS_FOR_NOTHING if found is None else _ends_text(found)
        if is_open:
            raise _UndecidedError(text.read_bytes)
    return _group(found)


def _may_differ(assertion: Assertion, beginning: str) -> bool:
    """Whether the rest of a text that begins like this decides the comparison of the whole."""
    if assertion.comparison is Comparison.NOT_CONTAINS:
        return assertion.target not in beginning
    return assertion.comparison in OF_EQUALITY and assertion.target.startswith(beginning)


def _ends_text(found: re.Match[bytes]) -> bool:
    return found.end() == found.endpos


def _extract(pattern: str | None, text: str) -> Sequence[str]:
    return _group(_search(pattern, text)) if pattern else (text,)


def _search(pattern: str, text: str) -> re.Match[bytes] | None:
    try:
        return compile_pattern(pattern).search(encode_text(text))
    except BadPatternError as problem:
        raise _UnanswerableError(f"the regular expression is wrong: {problem}") from None


def _json_values(assertion: Assertion, fact: JsonText, documents: _Documents) -> Sequence[Json]:
    if fact.unreadable_because is not None:
        raise _UnanswerableError(fact.unreadable_because.rstrip("."))
    # Imported here: it costs 4 MB and 40 ms, and an agent may never see a JSONPath.
    from runners.judging.jsonpath import BadPathError, find_in_text, find_values  # noqa: PLC0415

    path = assertion.property or "$"
    try:
        if len(fact.raw) >= LARGE_CHARS and assertion.source not in documents:
            with suppress(ValueError, msgspec.DecodeError):
                return find_in_text(path, _json_text(fact))
        if assertion.source not in documents:
            documents[assertion.source] = _parse(fact)
        return find_values(path, documents[assertion.source])
    except BadPathError as problem:
        raise _UnanswerableError(f"the JSONPath is wrong: {problem}") from None


def _json_text(fact: JsonText) -> str | bytes:
    """The text, and without a copy where it is UTF-8 as JSON should be."""
    if isinstance(fact.raw, str):
        return fact.raw
    return fact.raw.content if fact.raw.charset == "utf_8" else fact.raw.decode()


def _parse(fact: JsonText) -> Json:
    try:
        return read_json(fact.raw if isinstance(fact.raw, str) else fact.raw.decode())
    except ValueError as problem:
        why = str(problem).removeprefix("JSON is malformed: ")
        raise _UnanswerableError(f"it is not JSON: {why}") from None


def _header_values(assertion: Assertion, headers: Mapping[str, str]) -> Sequence[Json]:
    if not assertion.property:
        return (dict(headers),)
    value = headers.get(assertion.property.strip().lower())
    return () if value is None else _extract(assertion.regex, value)


def _named_number(name: str, numbers: Mapping[str, float]) -> Sequence[Json]:
    if name in numbers:
        return (numbers[name],)
    if not numbers:
        raise _UnanswerableError("nothing was measured")
    raise _UnanswerableError(f"there is no {name or 'property'}, only {', '.join(numbers)}")


def _compare(
    assertion: Assertion, values: Sequence[Json], fact: Fact | None
) -> tuple[str | None, str | None]:
    """Why the assertion does not hold, if so, and what was compared."""
    if not values:
        return _explain_missing(assertion, fact), None
    holds, target = COMPARE[assertion.comparison], _target(assertion)
    for position, value in enumerate(values, 1):
        try:
            if holds(value, target):
                continue
            reason = ""
        except IncomparableError as problem:
            reason = f" ({problem})"
        actual = _render(assertion, value)
        which = "it" if len(values) == 1 else f"value {position} of {len(values)}"
        is_what = f"{which} is {_quote(actual)}{_unit(assertion)}{reason}"
        return f"{_describe_target(assertion, fact)}, but {is_what}.", actual
    return None, _render(assertion, values[0] if len(values) == 1 else list(values))


def _target(assertion: Assertion) -> str:
    """The target; the names of headers in it in lower case, as the facts have them."""
    target = assertion.target
    if assertion.source is not Source.HEADERS or assertion.property:
        return target
    if assertion.comparison not in OF_EQUALITY:
        return target.strip().lower() if assertion.comparison in _OF_KEYS else target
    try:
        headers = read_json(target)
    except ValueError:
        return target
    if not isinstance(headers, dict):
        return target
    return write_json({name.lower(): value for name, value in headers.items()})


_OF_KEYS: Final = frozenset({Comparison.HAS_KEY, Comparison.NOT_HAS_KEY})


def _render(assertion: Assertion, value: Json) -> str:
    """The value as a result shows it, cut to what a result carries."""
    if assertion.source is Source.HEADERS:
        value = _hide_headers(assertion.property, value)
    if assertion.source is Source.DAYS_TO_EXPIRY and isinstance(value, float):
        value = math.floor(value * 100) / 100  # never up: 13.999 is not 14 days
    return _clip(render_value(value))


def _hide_headers(name: str, value: Json) -> Json:
    """The header of this name, or without a name all headers, without sensitive values."""
    if isinstance(value, dict):
        return {key: HIDDEN if key in SENSITIVE_HEADERS else one for key, one in value.items()}
    return HIDDEN if name.strip().lower() in SENSITIVE_HEADERS else value


def _explain_missing(assertion: Assertion, fact: Fact | None) -> str | None:
    if assertion.comparison in HOLDS_FOR_NOTHING:
        return None
    return f"{_describe_target(assertion, fact)}, but there is no such value."


def _explain_empty(assertion: Assertion, fact: Fact | None) -> str | None:
    """The sentence on a text that is empty for a known reason. None: it is not."""
    if not isinstance(fact, Text) or fact.value or fact.empty_because is None:
        return None
    return f"{_describe_target(assertion, fact)}, but {fact.empty_because}."


def _describe_target(assertion: Assertion, fact: Fact | None) -> str:
    expectation = _EXPECTATIONS[assertion.comparison]
    has_target = assertion.comparison not in WITHOUT_TARGET
    target = f" {_quote(assertion.target)}{_unit(assertion)}" if has_target else ""
    read_bytes = fact.read_bytes if isinstance(fact, Text) else None
    part = "" if read_bytes is None else f"The first {read_bytes} bytes of "
    return f"{part}{_subject(assertion)} should {expectation}{target}"


_UNITS: Final[Mapping[Source, str]] = {
    Source.RESPONSE_TIME: " ms",
    Source.LATENCY: " ms",
    Source.DAYS_TO_EXPIRY: " days",
}


def _unit(assertion: Assertion) -> str:
    return _UNITS.get(assertion.source, "")


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
    """The beginning of the text; lone surrogates, which no result carries, as JSON writes them."""
    if len(text) <= ACTUAL_LIMIT_BYTES // 4 and text.isascii():
        return text
    body = text[:ACTUAL_LIMIT_BYTES].encode("utf-8", "backslashreplace")
    return body[:ACTUAL_LIMIT_BYTES].decode("utf-8", "ignore")


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
    found = _group(compile_pattern(source).search(encode_text(text)))
    return found[0] if found else None


def _group(found: re.Match[bytes] | None) -> Sequence[str]:
    """The part that is compared. Empty: there was no match, or its group took no part in it."""
    if found is None:
        return ()
    group = found.group(1 if found.re.groups else 0)
    return () if group is None else (group.decode("utf-8", "replace"),)


def encode_text(text: str) -> bytes:
    """UTF-8 that a lone surrogate does not stop."""
    return text.encode("utf-8", "surrogatepass")


def _reason(problem: bytes) -> str:
    reason = problem.decode("utf-8", "replace")
    return f"{reason} ({_MISSING})" if reason.startswith(_MISSING_MARKS) else reason
