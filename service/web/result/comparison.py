"""What differs between two results of a check."""

import difflib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import fields

from contract.evidence import (
    BrowserEvidence,
    HttpEvidence,
    PageSeen,
    PlaywrightEvidence,
    ScriptEvidence,
    TlsFacts,
)
from contract.result import DnsEvidence, Evidence, FailureKind, Outcome, TcpEvidence
from contract.wire import Wire
from service.results.model import StoredResult
from service.web.result.message_bodies import format_json
from service.web.words import (
    NOTHING,
    format_bytes,
    format_duration,
    name_source,
    name_sources,
)

_NOTEWORTHY_MS: Final = 5.0
_NOTEWORTHY_SHARE: Final = 0.2
"""Shorter and smaller differences between two times are noise."""
_MOST_LETTERS: Final = 1_000
"""Longer facts are cut."""
_MOST_LINES: Final = 400
_MOST_COMPARED: Final = 4_000
"""Lines of a body that are compared: it takes time with their square."""
_CONTEXT: Final = 3
_OUTCOMES: Final = {
    "expected": "passed",
    "unexpected": "failed",
    "flaky": "flaky",
    "skipped": "skipped",
}

_TIMES: Final = "Times"
_OF_ANSWERS: Final = frozenset(
    {_TIMES, "Assertions", "Connection", "Redirects", "Response", "Response headers", "TLS"}
)
"""What only runs with an answer have."""
_COMPARED_AS_BODIES: Final = frozenset({"response"})
_ANSWERED: Final = frozenset(
    {
        FailureKind.ASSERTION,
        FailureKind.HTTP_STATUS,
        FailureKind.PACKET_LOSS,
        FailureKind.TOO_SLOW,
        FailureKind.EXPECTED_FAILURE,
    }
)
"""Failures of runs that went through to their end."""
_UNITS: Final = {"packet_size": "bytes", "packet_loss": "%"}
_SECONDS: Final = "_s"
"""How the names of fields in seconds end."""

Fact = str | float | None
"""A number is a time in ms, and compared as such."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A fact that is another one in the other result."""

    part: str
    name: str
    this: str
    other: str
    change: str
    """How much longer or shorter a time is; empty: it is no time."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of two bodies that were laid side by side."""

    kind: str
    """`added`, `removed`, `same`, or `gap` between stretches."""
    text: str


def compare(this: StoredResult, other: StoredResult) -> tuple[Difference, ...]:
    """The facts that differ, in the order of the page."""
    left_off = _leave_off(this, other)
    ours, theirs = (
        {key: fact for key, fact in _list_facts(one) if key[0] not in left_off}
        for one in (this, other)
    )
    keys = [*ours, *(key for key in theirs if key not in ours)]
    found = []
    for part, name in keys:
        one, two = ours.get((part, name)), theirs.get((part, name))
        if _differs(one, two):
            found.append(
                Difference(
                    part=part, name=name, this=_say(one), other=_say(two), change=_change(one, two)
                )
            )
    return tuple(found)


def _leave_off(this: StoredResult, other: StoredResult) -> Collection[str]:
    """The parts that say nothing where one of the two has none of them."""
    if are_answered(this, other):
        return () if _is_timed(this) and _is_timed(other) else (_TIMES,)
    return _OF_ANSWERS


def are_answered(this: StoredResult, other: StoredResult) -> bool:
    """Whether both runs got an answer, if their checks ask for one."""
    return _is_answered(this) and _is_answered(other)


def _is_answered(stored: StoredResult) -> bool:
    outcome = stored.detail.outcome if stored.detail else None
    if outcome is None:
        return False
    match outcome.evidence:
        case HttpEvidence(response=response):
            return response is not None
        case DnsEvidence(response_code=code):
            return code is not None
        case TcpEvidence():
            return outcome.timings.tcp is not None
        case None:
            return outcome.failure is None
        case _:
            return True


def _is_timed(stored: StoredResult) -> bool:
    """Whether a run went through to its end; one that broke off before is not faster for it."""
    outcome = stored.detail.outcome if stored.detail else None
    if outcome is None:
        return False
    return outcome.failure is None or outcome.failure.kind in _ANSWERED


def compare_bodies(this: StoredResult, other: StoredResult) -> tuple[Line, ...]:
    """How the body of the answer changed, from the other one to this; empty: it did not."""
    old, new = _lines(other), _lines(this)
    if old == new or not are_answered(this, other):
        return ()
    found: list[Line] = []
    for line in list(difflib.unified_diff(old, new, lineterm="", n=_CONTEXT))[2:]:
        if line.startswith("@@"):
            found.append(Line("gap", ""))
        else:
            found.append(Line({"+": "added", "-": "removed"}.get(line[0], "same"), line[1:]))
    return tuple(found[1 : _MOST_LINES + 1])


def _lines(stored: StoredResult) -> list[str]:
    evidence = stored.detail.outcome.evidence if stored.detail else None
    match evidence:
        case HttpEvidence(response=response) if response is not None:
            text = response.body
        case TcpEvidence(response=response):
            text = response or ""
        case DnsEvidence():
            text = "\n".join(sorted(_list_answers(evidence)))
        case _:
            return []
    pretty = format_json(text)
    return (text if pretty is None else pretty).splitlines()[:_MOST_COMPARED]


def _differs(one: Fact, two: Fact) -> bool:
    if isinstance(one, float) and isinstance(two, float):
        apart = abs(one - two)
        return apart >= _NOTEWORTHY_MS and apart >= _NOTEWORTHY_SHARE * max(one, two)
    return one != two


def _say(fact: Fact) -> str:
    if fact is None or fact == "":
        return NOTHING
    return fact if isinstance(fact, str) else format_duration(fact)


def _change(one: Fact, two: Fact) -> str:
    if not (isinstance(one, float) and isinstance(two, float)):
        return ""
    sign = "+" if one > two else "\N{MINUS SIGN}"
    return sign + format_duration(abs(one - two))


Facts = Iterator[tuple[tuple[str, str], Fact]]


def _list_facts(stored: StoredResult) -> Facts:
    yield ("Verdict", "Status"), stored.status.value.lower().replace("_", " ")
    yield ("Verdict", "Location"), stored.location
    detail = stored.detail
    if detail is None:
        return
    outcome = detail.outcome
    yield ("Verdict", "Reason"), _reason(outcome)
    yield ("Verdict", "Agent"), detail.agent_id
    yield (_TIMES, "Response time"), _time(stored.response_time_ms)
    for name in ("wait", "dns", "tcp", "tls", "first_byte", "download", "data", "total"):
        yield (_TIMES, name.replace("_", " ")), _time(getattr(outcome.timings, name))
    for one in outcome.assertions:
        about = f"{name_source(one.source)} {one.property}".strip()
        yield ("Assertions", f"{one.order + 1}. {about}"), (one.actual or "")[:_MOST_LETTERS]
    yield from _list_seen(outcome.evidence)


def _list_seen(evidence: Evidence | None) -> Facts:
    match evidence:
        case HttpEvidence():
            yield from _list_http(evidence)
        case DnsEvidence():
            yield from _list_dns(evidence)
        case ScriptEvidence():
            yield from _list_script(evidence)
        case PlaywrightEvidence():
            yield from _list_suite(evidence)
        case Wire():
            yield from _list_fields_of(evidence)
    yield from _list_tls(getattr(evidence, "tls", None))


def _reason(outcome: Outcome) -> str | None:
    said = outcome.failure.message if outcome.failure else outcome.degraded_because
    return None if said is None else name_sources(said)


def _time(ms: float | None) -> float | None:
    return None if ms is None else float(ms)


def _list_http(seen: HttpEvidence) -> Facts:
    yield ("Request", "Address"), seen.request.url
    yield from _list_fields("Request headers", seen.request.headers)
    yield ("Connection", "Address"), seen.remote_address
    for number, hop in enumerate(seen.hops, 1):
        yield ("Redirects", f"Answer {number}"), f"{hop.status_code} {hop.url}"
    if seen.response is not None:
        answer = seen.response
        yield ("Response", "Status"), f"{answer.status_code} {answer.status_text}".strip()
        yield ("Response", "HTTP version"), answer.http_version
        yield ("Response", "Size"), format_bytes(answer.body_bytes)
        yield from _list_fields("Response headers", answer.headers)


def _list_fields_of(evidence: Wire) -> Facts:
    """The plain fields of evidence that has no words of its own here."""
    for field in fields(evidence):
        value, name = getattr(evidence, field.name), field.name.replace("_", " ")
        if isinstance(value, dict):
            for key, measured in value.items():
                yield ("Measured", f"{name} {key}"), _time(measured)
        elif isinstance(value, int | float) and field.name.endswith(_SECONDS):
            yield ("Measured", name.removesuffix(" s")), format_duration(value * 1000)
        elif isinstance(value, str | int | float) and field.name not in _COMPARED_AS_BODIES:
            shown = f"{value:g}" if isinstance(value, float) else str(value)
            yield ("Measured", name), f"{shown} {_UNITS.get(field.name, '')}".strip()


def _list_dns(seen: DnsEvidence) -> Facts:
    yield ("DNS", "Response code"), seen.response_code
    yield ("DNS", "Name server"), seen.name_server
    yield ("DNS", "Protocol"), seen.protocol
    yield ("DNS", "Queries"), None if seen.queries is None else str(seen.queries)


def _list_suite(seen: PlaywrightEvidence) -> Facts:
    yield ("Suite", "Playwright"), seen.playwright_version
    yield ("Suite", "Node"), seen.node_version
    for test in seen.tests:
        name = f"{test.project} {test.title}".strip()
        yield ("Tests", name), _OUTCOMES[test.outcome]
        yield ("Test durations", name), _time(test.took_ms)


def _list_fields(part: str, headers: Mapping[str, str]) -> Facts:
    for name, value in sorted(headers.items()):
        yield (part, name), value[:_MOST_LETTERS]


def _list_tls(tls: TlsFacts | None) -> Facts:
    if tls is None:
        return
    yield ("TLS", "Version"), tls.version
    yield ("TLS", "Cipher"), tls.cipher
    yield ("TLS", "Trusted"), "yes" if tls.verified else tls.verify_error or "no"
    for number, one in enumerate(tls.chain, 1):
        yield ("TLS", f"Certificate {number}"), f"{one.subject}, serial {one.serial}"


def _list_script(seen: ScriptEvidence) -> Facts:
    yield ("Script", "Runtime"), seen.runtime_id
    for number, error in enumerate(seen.errors, 1):
        yield ("Errors", f"Error {number}"), error.message
    for test in seen.tests:
        yield ("Tests", test.title), _OUTCOMES[test.outcome]
    counted: dict[str, int] = {}
    for step in seen.steps:
        if step.where is None:
            continue
        counted[step.title] = counted.get(step.title, 0) + 1
        again = f" ({counted[step.title]})" if counted[step.title] > 1 else ""
        said = (
            _time(step.took_ms) if step.error is None else f"failed: {step.error[:_MOST_LETTERS]}"
        )
        yield ("Steps", step.title + again), said
    for number, call in enumerate(seen.requests, 1):
        status = call.error or str(call.status_code)
        yield ("Calls", f"{number}. {call.method} {call.url}"), status
    for page in seen.pages if isinstance(seen, BrowserEvidence) else ():
        yield from _list_page(page)


def _list_page(page: PageSeen) -> Facts:
    part = f"Page {page.index + 1}"
    yield (part, "Address"), page.url
    yield (part, "TTFB"), _time(page.metrics.ttfb_ms)
    yield (part, "FCP"), _time(page.metrics.fcp_ms)
    yield (part, "LCP"), _time(page.metrics.lcp_ms)
    yield (part, "TBT"), _time(page.metrics.tbt_ms)
    yield (part, "Console errors"), str(page.console_errors)
    yield (part, "Network errors"), str(page.network_errors)
    yield (part, "Uncaught exceptions"), str(page.document_errors)


def _list_answers(seen: DnsEvidence) -> Iterator[str]:
    answers = (seen.answer or {}).get("Answer")
    for one in answers if isinstance(answers, list) else ():
        if isinstance(one, dict):
            yield " ".join(str(one.get(key, "")) for key in ("name", "type", "data"))
