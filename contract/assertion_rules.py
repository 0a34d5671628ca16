"""Which assertions make sense for which check type.

Each function returns the wrong field and the rest of a sentence that begins with it, or None.
JSONPaths and regular expressions are checked by the package that compiles them.
"""

from typing import Final

from contract.assertions import (
    JSON_SOURCES,
    NUMBER_SOURCES,
    OF_EQUALITY,
    OF_NUMBERS,
    OF_OBJECTS,
    TEXT_SOURCES,
    WITHOUT_TARGET,
    Assertion,
    Comparison,
    Source,
)
from contract.checks import SPEC_TYPES, CheckType
from contract.targets import format_value, is_open

LATENCIES: Final = ("avg", "min", "max", "stdDev")
_MOST_NUMBER_CHARS: Final = 400

Wrong = tuple[str, str]


def assertion_problem(assertion: Assertion, kind: CheckType) -> Wrong | None:
    """Return why this assertion cannot work in a check of this type. None: it can."""
    return (
        _comparison_problem(assertion, kind)
        or _property_problem(assertion)
        or _target_problem(assertion)
        or _unused_problem(assertion)
    )


def comparisons_of(source: Source, *, of_part: bool) -> frozenset[Comparison]:
    """Return the comparisons of a source; `of_part`: of one header rather than of all headers."""
    has_members = source in JSON_SOURCES or (source is Source.HEADERS and not of_part)
    return frozenset(Comparison) if has_members else frozenset(Comparison) - OF_OBJECTS


def expression_of(assertion: Assertion) -> tuple[str, str] | None:
    """Return the field with the regular expression, and the expression. None: there is none."""
    if assertion.source in TEXT_SOURCES:
        field, pattern = "property", assertion.property
    elif assertion.source is Source.HEADERS:
        field, pattern = "regex", assertion.regex or ""
    else:
        return None
    return (field, pattern) if pattern and not is_open(pattern) else None


def path_of(assertion: Assertion) -> str | None:
    """Return the JSONPath of an assertion. None: it has none, or one with a variable in it."""
    path = assertion.property
    is_path = assertion.source in JSON_SOURCES and path and not is_open(path)
    return path if is_path else None


def _comparison_problem(assertion: Assertion, kind: CheckType) -> Wrong | None:
    takes = comparisons_of(assertion.source, of_part=bool(assertion.property))
    whose = f"{assertion.source}"
    if (of_type := SPEC_TYPES[kind].comparisons) is not None:
        takes, whose = takes & of_type, f"a check of type {kind}"
    if assertion.comparison in takes:
        return None
    return "comparison", f"is {assertion.comparison}; {whose} takes {', '.join(sorted(takes))}"


def _target_problem(assertion: Assertion) -> Wrong | None:
    source, comparison = assertion.source, assertion.comparison
    of_number = source in NUMBER_SOURCES and comparison in OF_EQUALITY
    if not of_number and comparison not in OF_NUMBERS:
        return None
    if is_open(assertion.target) or _is_number(assertion.target):
        return None
    because = f"{source} is one" if of_number else f"{comparison} compares numbers"
    return "target", f"must be a number, as {because}"


def _property_problem(assertion: Assertion) -> Wrong | None:
    if is_open(assertion.property):
        return None
    if assertion.source is Source.LATENCY and assertion.property not in LATENCIES:
        return "property", f"is {format_value(assertion.property)}; use avg, min, max or stdDev"
    return None


def _unused_problem(assertion: Assertion) -> Wrong | None:
    """Find the first field that is filled in and has no effect."""
    source, comparison = assertion.source, assertion.comparison
    if assertion.property and source in NUMBER_SOURCES - {Source.LATENCY}:
        return "property", f"would have no effect: {source} is a number; leave it empty"
    if assertion.regex and (source is not Source.HEADERS or not assertion.property):
        because = _REGEX_INSTEAD.get(source, f"{source} takes none")
        return "regex", f"would have no effect: {because}"
    if assertion.target and comparison in WITHOUT_TARGET:
        return "target", f"would have no effect: {comparison} compares with nothing; leave it empty"
    return None


_REGEX_INSTEAD: Final = {
    Source.HEADERS: "it picks a part of one header; name that in property",
    **dict.fromkeys(TEXT_SOURCES, "a regular expression on text belongs in property"),
}
"""What to do instead, by source."""


def _is_number(text: str) -> bool:
    """Whether comparisons read the text as a number, which may be too large for a float."""
    if len(text) > _MOST_NUMBER_CHARS or "_" in text:
        return False
    try:
        float(text)
    except ValueError:
        return False
    return any(map(str.isdigit, text))
