"""Rules of a check's fields that go beyond a type and a range; pure sentences, or None.

Expressions of assertions are compiled by the libraries that agents use. These are imported when the
first expression comes: many services never see one.
"""

import math
from collections.abc import Mapping
from typing import Final

from contract.assertion_rules import Wrong, expression_of, path_of
from contract.assertions import JSON_SOURCES, Assertion, Source
from contract.checks import SPEC_TYPES

SUB_MINUTE_OFFSETS: Final = (10, 20, 30)
_BELOW_A_MINUTE: Final = " and ".join(
    kind for kind, spec in SPEC_TYPES.items() if spec.may_run_below_a_minute
)


_ELSEWHERE: Final[dict[str, str]] = {
    "assertions": "belongs inside request; here it would be ignored",
    "variables": "is called environmentVariables here; under this name it would be ignored",
}
"""Fields that would silently not work: refused unless they are empty."""
NO_PHASES: Final[dict[str, str]] = dict.fromkeys(
    ("setupSnippetId", "tearDownSnippetId", "localSetupScript", "localTearDownScript"),
    "would not run: only API checks have a setup and a teardown; omit it",
)
NO_VARIABLES: Final = {
    "environmentVariables": "would not be used: checks of this type do not support them; omit them"
}
SCRIPT_DECIDES: Final = {
    "shouldFail": "would have no effect: the script itself decides what must fail; omit it"
}
_PLAIN_REQUEST: Final = {
    "basicAuth": "would not be sent: a URL check sends no credentials; put them into the"
    " url, or use an API check",
    **dict.fromkeys(
        ("headers", "queryParameters", "body"),
        "would not be sent: a URL check only requests its url; use an API check",
    ),
}
"""What the requests of URL checks do not have."""


def offset_problem(frequency: int, offset: int | None) -> str | None:
    """The specification's three rules on `frequencyOffset`; says what to use instead."""
    if frequency == 0:
        if offset in SUB_MINUTE_OFFSETS:
            return None
        given = "is missing" if offset is None else f"is {offset}"
        return f"{given}; with frequency 0 use 10, 20 or 30 (seconds between runs)"
    if offset is None:
        return None
    most = frequency * 10 if frequency <= 60 else math.ceil(frequency / 60)
    if 1 <= offset <= most:
        return None
    return f"is {offset}; with frequency {frequency} use 1 to {most}"


def frequency_problem(frequency: object) -> str | None:
    """The first of those rules goes on: checks of few types run so often."""
    if frequency == 0 and isinstance(frequency, int):
        return f"is 0, which only {_BELOW_A_MINUTE} checks may have; use 1 or more"
    return None


def unsupported_problem(
    body: Mapping[str, object], refused: Mapping[str, str]
) -> tuple[str, str] | None:
    """The first field that would silently not work, and why; `refused`: those of its type."""
    for field, sentence in {**_ELSEWHERE, **refused}.items():
        if body.get(field):
            return field, sentence
    return None


def plain_request_problem(request: Mapping[str, object]) -> tuple[str, str] | None:
    """The first field that a URL check would not send, and why; clients send empty ones."""
    for field, sentence in _PLAIN_REQUEST.items():
        given = request.get(field)
        if any(given.values()) if isinstance(given, Mapping) else given:
            return field, sentence
    return None


def phase_problem(script_field: str, *, script: str | None, snippet_id: int | None) -> str | None:
    """A phase has one script: a snippet, or one of the check's own."""
    if script is None or snippet_id is None:
        return None
    return f"conflicts with {script_field}; use one of them"


def property_problem(source: str, prop: str) -> str | None:
    """What `property` must be for a source, beyond making sense."""
    if source in JSON_SOURCES and not prop.startswith("$"):
        return "must be a JSONPath that begins with $"
    if source == Source.HEADERS and not prop.strip():
        return "must name a header"
    return None


def heartbeat_problem(period_s: float, grace_s: float) -> tuple[str, str] | None:
    """Period 30 seconds to 365 days, grace 0 to 365 days."""
    year_s = 365 * 86_400
    if not 30 <= period_s <= year_s:
        return "period", f"comes to {_format_seconds(period_s)}; use 30 seconds to 365 days"
    if not grace_s <= year_s:
        return "grace", f"comes to {_format_seconds(grace_s)}; use at most 365 days"
    return None


def _format_seconds(length_s: float) -> str:
    return f"{length_s:.15g} seconds" if math.isfinite(length_s) else "more than 1e+308 seconds"


THRESHOLDS: Final = {
    "degradedResponseTime": "maxResponseTime",
    "degradedPacketLossThreshold": "maxPacketLossThreshold",
}
"""Above the first one a result is degraded, above the second one it fails."""
_SENT_FOR_NOTHING: Final = frozenset({15_000})
"""What Terraform sends as `degradedResponseTime` where its user wrote none."""


def thresholds_problem(sent: Mapping[str, object], defaults: Mapping[str, object]) -> Wrong | None:
    """The threshold that no result could be above without failing. None: there is none.

    `sent`: fields that were sent. A default is no mistake: clients send back what they read.
    """
    for name, above in THRESHOLDS.items():
        degraded, failed = sent.get(name), sent.get(above)
        if not isinstance(degraded, int | float) or not isinstance(failed, int | float):
            continue
        if degraded > failed and degraded not in {defaults.get(name), *_SENT_FOR_NOTHING}:
            return name, f"is {degraded:g}, more than {above}; use at most {failed:g}"
    return None


_LENGTH: Final = ".length"
_MISSING: Final = "look-around and back-references are not available here"
_MISSING_MARKS: Final = ("invalid perl operator", "invalid escape sequence: \\")
_MOST_PATTERN_CHARS: Final = 10_000


def expression_problem(assertion: Assertion) -> Wrong | None:
    """The field whose expression cannot be compiled, and why. None: all can."""
    if (path := path_of(assertion)) is not None:
        problem = _path_problem(path)
        return None if problem is None else ("property", f"is not a valid JSONPath: {problem}")
    if (expression := expression_of(assertion)) is not None:
        field, pattern = expression
        problem = _pattern_problem(pattern)
        return None if problem is None else (field, f"is not a valid regular expression: {problem}")
    return None


def _path_problem(path: str) -> str | None:
    from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError  # noqa: PLC0415 - 40 ms, 4 MB

    environment = JSONPathEnvironment()
    try:
        environment.compile(path)
        if path.endswith(_LENGTH) and not path.endswith(f".{_LENGTH}"):
            environment.compile(path.removesuffix(_LENGTH))
    except JSONPathError as problem:
        return str(problem.args[0])
    except RecursionError:
        return "it is nested too deeply"
    return None


def _pattern_problem(pattern: str) -> str | None:
    import re2  # noqa: PLC0415 - as above

    if len(pattern) > _MOST_PATTERN_CHARS:
        return f"it has {len(pattern)} characters; use at most {_MOST_PATTERN_CHARS}"
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern.encode("utf-8", "surrogatepass"), options)
    except re2.error as problem:
        return _explain(problem.args[0].decode("utf-8", "replace"))
    return None


def _explain(reason: str) -> str:
    """Say to people who know other engines what this one does not have."""
    return f"{reason} ({_MISSING})" if reason.startswith(_MISSING_MARKS) else reason
