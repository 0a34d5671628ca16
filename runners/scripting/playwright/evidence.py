"""Builds the observation and the evidence of a script's run."""

import re
from collections.abc import Iterable
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from contract.evidence import (
    BrowserEvidence,
    MultiStepEvidence,
    PageMetrics,
    PageSeen,
    RequestNode,
    RequestTimings,
    ScriptError,
    ScriptTest,
    StepSeen,
)
from contract.result import Failure, FailureKind, LogLine, Timings
from redaction.policy import cut
from runners.runner import Observation
from runners.scripting.playwright.reporter import (
    ErrorFact,
    PageFact,
    ReporterEvents,
    RequestFact,
    StepBegan,
    StepEnded,
    TestEnded,
    strip_colours,
)
from runners.scripting.playwright.run import ScriptRun
from runners.scripting.playwright.verdict import MESSAGE_CHARS, describe_gap, find_failure
from runners.scripting.proxy.egress_proxy import UnreachedTarget

_STEPS: Final = 300
_TESTS: Final = 300
_ERRORS: Final = 20
_TITLE_CHARS: Final = 300
_URL_CHARS: Final = 2048
_ERROR_CHARS: Final = 4000
_LOG_CHARS: Final = 1_000_000
_LINE_COST_CHARS: Final = 32


def build_browser_evidence(
    events: ReporterEvents, *, runtime_id: str, start_ms: float
) -> BrowserEvidence:
    """Build the evidence of a BROWSER check; `start_ms`: the run's start, in ms since the epoch."""
    pages = tuple(_build_page(events.pages[index]) for index in sorted(events.pages))
    return BrowserEvidence(pages=pages, **_build_common_evidence(events, runtime_id, start_ms))


def build_multi_step_evidence(
    events: ReporterEvents, *, runtime_id: str, start_ms: float
) -> MultiStepEvidence:
    """Build the evidence of a MULTI_STEP check."""
    return MultiStepEvidence(**_build_common_evidence(events, runtime_id, start_ms))


def build_log(
    printed: Iterable[LogLine], events: ReporterEvents, ours: Iterable[LogLine], *, start_ms: float
) -> tuple[LogLine, ...]:
    """Merge printed lines, pages' messages and the agent's notes by time; cut with a notice."""
    told = [
        LogLine(
            after_ms=_offset_ms(fact.at, start_ms),
            level=fact.level,
            message=strip_colours(fact.message),
        )
        for fact in events.log
    ]
    clean = _apply_levels(printed, events)
    return _cut_log(sorted([*ours, *clean, *told], key=lambda line: line.after_ms))


def _apply_levels(printed: Iterable[LogLine], events: ReporterEvents) -> list[LogLine]:
    """Give printed lines the levels that the script reported for them."""
    meant: dict[str, list[Literal["DEBUG", "WARN"]]] = {}
    for fact in events.levels:
        for text in strip_colours(fact.message).split("\n"):
            meant.setdefault(text, []).append(fact.level)
    clean = []
    for line in printed:
        message = strip_colours(line.message)
        levels = meant.get(message)
        level = levels.pop(0) if levels else line.level
        known = message if events.paths is None else events.paths.line(message)
        clean.append(LogLine(after_ms=line.after_ms, level=level, message=known))
    return clean


def _cut_log(lines: list[LogLine]) -> tuple[LogLine, ...]:
    left = _LOG_CHARS
    for number, line in enumerate(lines):
        left -= len(line.message) + _LINE_COST_CHARS
        if left < 0:
            more = len(lines) - number
            notice = LogLine(
                after_ms=line.after_ms,
                level="WARN",
                message=f"The log is cut here: {more} more lines are left out.",
            )
            return (*lines[:number], notice)
    return tuple(lines)


def _build_common_evidence(
    events: ReporterEvents, runtime_id: str, start_ms: float
) -> dict[str, Any]:
    errors = events.errors
    steps = [
        step
        for step in events.steps.values()
        if _is_worth_showing(step, events.step_ends.get(step.id))
    ]
    return {
        "runtime_id": runtime_id,
        "playwright": None if events.began is None else events.began.playwright,
        "requests": tuple(
            _build_request(events.requests[index], start_ms) for index in sorted(events.requests)
        ),
        "steps": tuple(
            _build_step(step, events.step_ends.get(step.id), start_ms) for step in steps[:_STEPS]
        ),
        "steps_left_off": max(0, len(steps) - _STEPS),
        "tests": tuple(_build_test(test) for test in list(events.tests.values())[:_TESTS]),
        "errors": tuple(_build_error(error) for error in errors[:_ERRORS]),
        "user_script_errors": len(errors),
    }


def _build_page(fact: PageFact) -> PageSeen:
    return PageSeen(
        index=fact.index,
        url=cut(fact.url, _URL_CHARS),
        metrics=PageMetrics(
            ttfb_ms=fact.ttfb,
            fcp_ms=fact.fcp,
            lcp_ms=fact.lcp,
            cls=fact.cls,
            tbt_ms=fact.tbt,
            content_loaded_ms=fact.dom_content_loaded,
            load_ms=fact.load,
        ),
        console_errors=fact.console_errors,
        network_errors=fact.network_errors,
        document_errors=fact.document_errors,
    )


def _build_request(fact: RequestFact, start_ms: float) -> RequestNode:
    return RequestNode(
        method=fact.method,
        url=cut(fact.url, _URL_CHARS),
        started_after_ms=_offset_ms(fact.started_at, start_ms),
        status_code=fact.status,
        status_text=cut(fact.status_text, _TITLE_CHARS),
        remote_address=fact.address,
        body_bytes=fact.body_bytes,
        timings=RequestTimings(
            dns=fact.dns,
            tcp=fact.tcp,
            tls=fact.tls,
            first_byte=fact.first_byte,
            download=fact.download,
            total=fact.total,
        ),
        error=None if fact.error is None else cut(strip_colours(fact.error), _ERROR_CHARS),
    )


def _is_worth_showing(began: StepBegan, ended: StepEnded | None) -> bool:
    """Whether a step is the user's own, failed or did not end; Playwright's fixtures are none."""
    return began.where is not None or ended is None or ended.error is not None


def _build_step(began: StepBegan, ended: StepEnded | None, start_ms: float) -> StepSeen:
    error = None if ended is None or ended.error is None else strip_colours(ended.error)
    return StepSeen(
        title=cut(strip_colours(began.title), _TITLE_CHARS),
        category=cut(began.category, _TITLE_CHARS),
        where=began.where,
        started_after_ms=_offset_ms(began.at, start_ms),
        took_ms=None if ended is None else ended.took_ms,
        error=None if error is None else cut(error, _TITLE_CHARS),
    )


def _offset_ms(at_ms: float, start_ms: float) -> float:
    """Compute ms since the run started, to 0.1 ms; 0 if the clock was set back meanwhile."""
    return max(0.0, round(at_ms - start_ms, 1))


def _build_error(fact: ErrorFact) -> ScriptError:
    return ScriptError(
        message=cut(strip_colours(fact.message), _ERROR_CHARS),
        where=fact.where,
        is_soft=fact.soft,
        test=None if fact.test is None else cut(fact.test, _TITLE_CHARS),
        frame=None if fact.frame is None else cut(strip_colours(fact.frame), _ERROR_CHARS),
    )


def _build_test(fact: TestEnded) -> ScriptTest:
    return ScriptTest(
        title=cut(fact.title, _TITLE_CHARS),
        status=fact.status,
        outcome=fact.outcome,
        took_ms=fact.took_ms,
    )


_TUNNEL: Final = "ERR_TUNNEL_CONNECTION_FAILED"
"""Chromium's error when the proxy cannot reach a target."""
_WHERE: Final = re.compile(rf"{_TUNNEL} at (\S+)")


def build_observation(run: ScriptRun, evidence: BrowserEvidence | MultiStepEvidence) -> Observation:
    """Build the observation of a run: its failure, evidence, artifacts and log.

    Raises:
        BrowserDidNotStartError: our fault.
        RunBrokeOffError: our fault.
    """
    took_ms = round(run.ended.took_s * 1000, 1)
    failure = find_failure(
        run.events,
        run.ended,
        limit_s=run.limit_s,
        memory_mb=run.memory_mb,
        is_degraded=run.degraded_because is not None,
    )
    return Observation(
        response_time_ms=took_ms,
        timings=Timings(total=took_ms),
        failure=add_proxy_cause(failure, run.unreached),
        degraded_because=run.degraded_because or describe_gap(run.events),
        evidence=evidence,
        artifacts=run.artifacts,
        log=build_log(run.ended.log, run.events, run.notes, start_ms=run.start_ms),
    )


def add_proxy_cause(
    failure: Failure | None, unreached: tuple[UnreachedTarget, ...]
) -> Failure | None:
    """Add the proxy's reason to a failure that only says that no tunnel was made."""
    if failure is None or _TUNNEL not in failure.message:
        return failure
    cause = _find_cause(failure.message, unreached)
    if cause is None:
        return failure
    if cause.kind is FailureKind.EGRESS:
        return Failure(kind=cause.kind, message=cause.why, detail=failure.detail)
    told = cut(f"{cause.why}\n{failure.message}", MESSAGE_CHARS)
    return Failure(kind=failure.kind, message=told, detail=failure.detail)


def _find_cause(message: str, unreached: tuple[UnreachedTarget, ...]) -> UnreachedTarget | None:
    hosts = {_parse_host(url) for url in _WHERE.findall(message)}
    of_host = [one for one in unreached if one.host in hosts]
    if of_host:
        return of_host[-1]
    # After a redirect, the error names the address that the script requested.
    return unreached[0] if len(unreached) == 1 else None


def _parse_host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
