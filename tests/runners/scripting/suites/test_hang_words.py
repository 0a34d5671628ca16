"""A suite that had to be stopped says what it was doing, and which limit that was."""

import json
from typing import Any

import pytest

from contract.result import FailureKind
from runners.scripting.suites.reporter import SuiteEvents
from runners.scripting.suites.verdict import fail_out_of_time

CONFIGURED: dict[str, Any] = {"fact": "prepares", "servers": [], "setup": None}
BEGAN: dict[str, Any] = {"fact": "began", "playwright": "1.65.1", "tests": 3}
AWAKE: dict[str, Any] = {"fact": "awake", "worker": 0}
RUNNER_AWAKE: dict[str, Any] = {"fact": "awake", "worker": -1}
STOPPED = "The suite was stopped after 29 min 45 s to keep its files within its limit of 30 min: "
BUSY = ": is there a loop without an end, or a call that blocks?"


def begun(test: str = "a") -> dict[str, Any]:
    about = {"project": "", "title": f"pays {test}", "file": "a.spec.js", "line": 7}
    return {"fact": "testBegan", "test": test, **about}


def hung(**changes: Any) -> dict[str, Any]:
    return {"fact": "hung", "test": "a", "worker": 0, **changes}


def passed() -> dict[str, Any]:
    ended = {"status": "passed", "outcome": "expected", "retry": 0, "tookMs": 1}
    return {**begun(), "fact": "testEnded", **ended}


def said(
    before: list[dict[str, Any]], after: list[dict[str, Any]], *, installed_s: float = 0
) -> str:
    facts = SuiteEvents()
    for fact in before:
        facts.take(json.dumps(fact).encode())
    facts.stop()
    for fact in after:
        facts.take(json.dumps(fact).encode())
    failure = fail_out_of_time(facts, limit_s=1800, stopped_after_s=1785, installed_s=installed_s)
    assert failure.kind is FailureKind.TIMEOUT
    assert failure.detail["limitSeconds"] == 1800
    return failure.message.removeprefix(STOPPED)


@pytest.mark.parametrize(
    ("told", "doing"),
    [
        (
            [AWAKE, hung(step="Click #buy", stepWhere="a.spec.js:9:3")],
            "was in “Click #buy” (a.spec.js:9:3).",
        ),
        (
            [AWAKE, hung(step="Click #buy", inside="beforeAll hook")],
            "was in “Click #buy”, in “beforeAll hook”.",
        ),
        ([AWAKE, hung(last="Click #a")], "was in no step after “Click #a”."),
        (
            [RUNNER_AWAKE, hung(last="Click #a", lastWhere="a.spec.js:8:3")],
            f"was busy after “Click #a” (a.spec.js:8:3){BUSY}",
        ),
        (
            [hung(step="order", last="Click #a")],
            f"was busy in “order”, after “Click #a”{BUSY}",
        ),
        ([hung(step="spin")], f"was busy in “spin”{BUSY}"),
        ([], "was under way, and the test runner was busy itself."),
    ],
)
def test_a_test_is_named_with_the_step_that_it_hung_in(
    told: list[dict[str, Any]], doing: str
) -> None:
    expected = f"a.spec.js:7 › pays a {doing}"  # noqa: RUF001 - Playwright's own sign
    assert said([BEGAN, begun()], told) == expected


def test_further_tests_are_counted() -> None:
    told = said([BEGAN, begun(), begun("b"), begun("c")], [AWAKE, hung(step="Click")])
    assert told.endswith("was in “Click” (2 more tests were under way).")


@pytest.mark.parametrize(
    ("before", "after", "doing"),
    [
        ({"setup": "a.js"}, [], "it was still in its global setup (a.js)."),
        (
            {"servers": ["npm at h:80"]},
            [],
            "it was still waiting for its web server (npm at h:80).",
        ),
        (
            {"servers": ["npm at h:80"], "setup": "a.js"},
            [{"fact": "inSetup"}],
            "it was still in its global setup (a.js).",
        ),
        (
            {"servers": ["npm at h:80"], "setup": "a.js"},
            [],
            "it was still waiting for its web server (npm at h:80), or in its global setup (a.js).",
        ),
        ({}, [], "Playwright Test had not begun, or was still loading its tests."),
    ],
)
def test_what_comes_before_the_tests_is_named(
    before: dict[str, Any], after: list[dict[str, Any]], doing: str
) -> None:
    # Playwright tells that it begins once more as it is stopped.
    assert said([{**CONFIGURED, **before}], [*after, BEGAN]) == doing


def test_between_and_after_tests_the_last_one_is_named() -> None:
    assert said([BEGAN], []) == "it was about to begin its first test."
    assert said([BEGAN, begun(), passed()], []).startswith(
        "no test was under way after a.spec.js:7 › pays a: is a "  # noqa: RUF001
    )


def test_what_the_packages_took_of_the_time_is_told() -> None:
    told = said([BEGAN], [], installed_s=240)
    assert told.endswith("first test. Its packages took 4 min of that.")


def test_what_goes_wrong_as_it_is_stopped_is_no_error_of_the_suites() -> None:
    facts = SuiteEvents()
    facts.stop()
    facts.take(b'{"fact": "suiteError", "message": "the server exited", "file": "", "line": 0}')
    assert facts.errors == []
