"""What scripted checks saw, as the API shows it; pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import to_builtins

from contract.result import ArtifactKind, LogLine, Outcome, Result
from contract.script_evidence import BrowserEvidence, PageSeen, ScriptEvidence
from contract.suite_evidence import PlaywrightEvidence
from service.results.asset_paths import asset_path

_LIMITS: Final[Mapping[str, tuple[float, float]]] = {
    "TTFB": (800, 1800),
    "FCP": (1800, 3000),
    "LCP": (2500, 4000),
    "CLS": (0.1, 0.25),
    "TBT": (200, 600),
}
"""Up to the first it is good, above the second poor."""


def browser(result: Result, started_ms: int, result_id: str) -> dict[str, Any]:
    """A browser check's result."""
    evidence = result.outcome.evidence
    seen = evidence if isinstance(evidence, BrowserEvidence) else None
    pages = seen.pages if seen else ()
    return {
        **_script(result, started_ms, result_id),
        "traceSummary": _summary(pages, seen),
        "pages": [_page(page) for page in pages],
        "playwrightTestVideos": _paths(result, result_id, "video"),
    }


def multi_step(result: Result, started_ms: int, result_id: str) -> dict[str, Any]:
    """A multi-step check's result."""
    return _script(result, started_ms, result_id)


def suite(result: Result, started_ms: int, result_id: str) -> dict[str, Any]:
    """A Playwright suite's result."""
    evidence = result.outcome.evidence
    seen = evidence if isinstance(evidence, PlaywrightEvidence) else None
    return {
        **_run(result, started_ms, result_id),
        "playwrightVersion": seen.playwright_version if seen else None,
        "nodeVersion": seen.node_version if seen else None,
        "counts": to_builtins(seen.counts) if seen else None,
        "tests": to_builtins(seen.tests) if seen else [],
        "errors": list(seen.errors) if seen else [],
        "truncated": seen.truncated if seen else False,
        "playwrightTestVideos": _paths(result, result_id, "video"),
    }


def _script(result: Result, started_ms: int, result_id: str) -> dict[str, Any]:
    evidence = result.outcome.evidence
    seen = evidence if isinstance(evidence, ScriptEvidence) else None
    return {
        "type": "PLAYWRIGHT_TEST" if seen and seen.playwright else "PLAYWRIGHT",
        **_run(result, started_ms, result_id),
        "runtimeVersion": seen.runtime_id if seen else None,
        "playwrightVersion": seen.playwright if seen else None,
        "errors": to_builtins(seen.errors) if seen else [],
        "requests": to_builtins(seen.requests) if seen else [],
        "steps": to_builtins(seen.steps) if seen else [],
        "stepsLeftOff": seen.steps_left_off if seen else 0,
    }


def _run(result: Result, started_ms: int, result_id: str) -> dict[str, Any]:
    outcome = result.outcome
    reports = _paths(result, result_id, "report")
    return {
        "startTime": started_ms,
        "endTime": started_ms + round(result.took_s * 1000),
        "jobLog": log(outcome, started_ms),
        "jobAssets": [artifact.name for artifact in outcome.artifacts],
        "playwrightTestTraces": _paths(result, result_id, "trace"),
        "playwrightTestJsonReportFile": reports[0] if reports else None,
    }


def log(outcome: Outcome, started_ms: int) -> list[dict[str, Any]]:
    """The lines of a run's log."""
    return _lines(outcome.log, started_ms)


def phased_log(outcome: Outcome, started_ms: int) -> dict[str, list[dict[str, Any]]]:
    """The lines of an API check's log; those of no script are the request's."""
    phases: dict[str, list[LogLine]] = {"setup": [], "request": [], "teardown": []}
    for line in outcome.log:
        phases[line.phase or "request"].append(line)
    return {phase: _lines(lines, started_ms) for phase, lines in phases.items()}


def _lines(lines: Iterable[LogLine], started_ms: int) -> list[dict[str, Any]]:
    return [
        {"time": started_ms + round(line.after_ms), "msg": line.message, "level": line.level}
        for line in lines
    ]


def _paths(result: Result, result_id: str, kind: ArtifactKind) -> list[str]:
    found = [one.name for one in result.outcome.artifacts if one.kind == kind]
    return [asset_path(result.check_id, result_id, name) for name in found]


def _summary(pages: Iterable[PageSeen], seen: ScriptEvidence | None) -> dict[str, int]:
    return {
        "consoleErrors": sum(page.console_errors for page in pages),
        "networkErrors": sum(page.network_errors for page in pages),
        "documentErrors": sum(page.document_errors for page in pages),
        "userScriptErrors": seen.user_script_errors if seen else 0,
    }


def _page(page: PageSeen) -> dict[str, Any]:
    metrics = page.metrics
    values = {
        "TTFB": metrics.ttfb_ms,
        "FCP": metrics.fcp_ms,
        "LCP": metrics.lcp_ms,
        "CLS": metrics.cls,
        "TBT": metrics.tbt_ms,
    }
    return {
        "pageIndex": page.index,
        "url": page.url,
        "webVitals": {
            name: None if value is None else {"value": value, "score": score(name, value)}
            for name, value in values.items()
        },
        "pageTimings": {"onContentLoad": metrics.content_loaded_ms, "onLoad": metrics.load_ms},
        "consoleErrors": page.console_errors,
        "networkErrors": page.network_errors,
        "documentErrors": page.document_errors,
    }


def score(name: str, value: float) -> str:
    """What a measure of a page is worth, by the limits that its makers give."""
    good, poor = _LIMITS[name]
    if value <= good:
        return "GOOD"
    return "POOR" if value > poor else "NEEDS_IMPROVEMENT"
