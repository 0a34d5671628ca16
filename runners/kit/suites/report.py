"""A suite's result in the form of Playwright's JSON reporter, for tools that read that. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from contract.suite_evidence import PlaywrightEvidence, SuiteTest

REPORT_NAME: Final = "test-results.json"


def report_of(seen: PlaywrightEvidence, *, took_ms: float) -> dict[str, Any]:
    """One suite per file, one spec per test, one test per project."""
    files: dict[str, dict[tuple[str, int], list[SuiteTest]]] = {}
    for test in seen.tests:
        specs = files.setdefault(test.file, {})
        specs.setdefault((test.title, test.line), []).append(test)
    return {
        "config": {"version": seen.playwright_version, "projects": _projects(seen.tests)},
        "suites": [_file(name, specs) for name, specs in files.items()],
        "errors": [{"message": message} for message in seen.errors],
        "stats": {"duration": took_ms, **_stats(seen.tests)},
    }


def _projects(tests: tuple[SuiteTest, ...]) -> list[dict[str, str]]:
    return [{"name": name} for name in dict.fromkeys(test.project for test in tests)]


def _file(name: str, specs: Mapping[tuple[str, int], list[SuiteTest]]) -> dict[str, Any]:
    listed = [_spec(name, title, line, tests) for (title, line), tests in specs.items()]
    return {"title": name, "file": name, "line": 0, "column": 0, "specs": listed}


def _spec(name: str, title: str, line: int, tests: list[SuiteTest]) -> dict[str, Any]:
    return {
        "title": title,
        "ok": not any(_is_bad(test) for test in tests),
        "file": name,
        "line": line,
        "tests": [_test(test) for test in tests],
    }


def _is_bad(test: SuiteTest) -> bool:
    return test.outcome == "unexpected" or test.status == "interrupted"


def _test(test: SuiteTest) -> dict[str, Any]:
    last = {
        "status": test.status,
        "duration": test.took_ms,
        "retry": test.retries,
        "errors": [{"message": message} for message in test.errors],
    }
    return {
        "projectName": test.project,
        "status": "unexpected" if _is_bad(test) else test.outcome,
        "expectedStatus": "skipped"
        if test.outcome == "skipped" and not _is_bad(test)
        else "passed",
        "results": [last],
    }


def _stats(tests: tuple[SuiteTest, ...]) -> dict[str, int]:
    names = ("expected", "unexpected", "flaky", "skipped")
    seen: list[str] = ["unexpected" if _is_bad(test) else test.outcome for test in tests]
    return {name: seen.count(name) for name in names}
