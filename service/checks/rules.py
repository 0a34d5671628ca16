"""Rules of a check's fields that go beyond a type and a range; pure sentences, or None."""

import math
from collections.abc import Mapping
from typing import Final

from contract.assertions import JSON_SOURCES, Source

SUB_MINUTE_OFFSETS: Final = (10, 20, 30)


_NOT_YET: Final[dict[str, str]] = {
    "groupId": "names a check group, and there is none with this id; leave it out",
    "setupSnippetId": "names a snippet, and there is none with this id; leave it out",
    "tearDownSnippetId": "names a snippet, and there is none with this id; leave it out",
    "localSetupScript": "would not run: this version has no setup phase; leave it out",
    "localTearDownScript": "would not run: this version has no teardown phase; leave it out",
    "assertions": "belongs inside request; here it would be passed over",
    "variables": "would not be filled in: this version has no variables of a check; leave them out",
    "environmentVariables": "would not be filled in: this version has no variables of a check;"
    " leave them out",
    "alertChannelSubscriptions": "names an alert channel, and there is none with this id;"
    " leave it out",
    "triggerIncident": "names a status page service, and there is none with this id; leave it out",
}
"""Fields that would silently not work: refused unless they are empty."""


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
    """The first of those rules goes on: of other types than API and TCP nothing runs so often."""
    if frequency == 0 and isinstance(frequency, int):
        return "is 0, which only API and TCP checks may have; use 1 or more"
    return None


def unsupported_problem(body: Mapping[str, object]) -> tuple[str, str] | None:
    """The first field that would silently not work, and why."""
    for field, sentence in _NOT_YET.items():
        if body.get(field):
            return field, sentence
    return None


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
        return "period", "must be 30 seconds to 365 days"
    if not grace_s <= year_s:
        return "grace", "must be at most 365 days"
    return None
