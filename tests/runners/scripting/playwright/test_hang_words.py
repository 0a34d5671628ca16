"""A run that had to be stopped says what its script was doing, and which limit that was."""

import json
from typing import Any

import pytest

from contract.result import FailureKind
from runners.scripting.playwright.reporter import ReporterEvents
from runners.scripting.playwright.verdict import fail_out_of_time

BEGAN: dict[str, Any] = {"fact": "began", "playwright": "1.65.1", "tests": 1}
AFTER: dict[str, Any] = {"at": 1e14}
AWAKE: dict[str, Any] = {"fact": "awake", **AFTER}
BUSY = ": is there a loop without an end, or a call that blocks?"
OPEN = ": is a timer, a server or a browser still open?"


def step(number: int, category: str = "pw:api", **changes: Any) -> dict[str, Any]:
    about = {"title": f"Click #{number}", "category": category, "where": f"s.js:{number}:3"}
    return {"fact": "stepBegan", "id": number, **about, **changes}


def ended(number: int, **changes: Any) -> dict[str, Any]:
    return {"fact": "stepEnded", "id": number, "tookMs": 1, "at": number, **changes}


def book(*facts: dict[str, Any]) -> ReporterEvents:
    """`AFTER`: what came after it was stopped."""
    told = ReporterEvents()
    for fact in facts:
        if fact.get("at") == AFTER["at"]:
            told.stop()
        told.take(json.dumps(fact).encode())
    return told


def said(*facts: dict[str, Any]) -> str:
    failure = fail_out_of_time(book(*facts), 240)
    assert failure.kind is FailureKind.TIMEOUT
    assert failure.detail["limitSeconds"] == 240
    return failure.message.split(" within its limit of 4 min: ")[1]


@pytest.mark.parametrize(
    ("facts", "doing"),
    [
        ((step(1), AWAKE), "it was in “Click #1” (s.js:1:3)."),
        ((step(1), AWAKE, ended(1, **AFTER)), "it was in “Click #1” (s.js:1:3)."),
        (
            (step(1, "hook", title="beforeAll"), step(2), AWAKE),
            "it was in “Click #2” (s.js:2:3), in “beforeAll”.",
        ),
        ((step(1), ended(1), AWAKE), f"no step was under way after “Click #1” (s.js:1:3){OPEN}"),
        (
            (step(1), step(2), ended(2), step(3, "hook", title="After Hooks", where=None), AWAKE),
            "it was in “Click #1” (s.js:1:3).",
        ),
        ((AWAKE,), f"no step was under way, before its first step{OPEN}"),
        (
            (step(1), ended(1)),
            f"the script itself was busy after “Click #1” (s.js:1:3){BUSY}",
        ),
        (
            (step(1, "test.step", title="spin"),),
            f"the script itself was busy in “spin” (s.js:1:3), before its first step{BUSY}",
        ),
        (
            (step(1, "test.step", title="order"), step(2), ended(2)),
            f"the script itself was busy in “order” (s.js:1:3), after “Click #2” (s.js:2:3){BUSY}",
        ),
    ],
)
def test_the_step_that_it_hung_in_is_named(facts: tuple[dict[str, Any], ...], doing: str) -> None:
    assert said(BEGAN, *facts) == doing


def test_what_had_failed_before_it_hung_is_told() -> None:
    over = {"fact": "error", "message": "Test timeout of 5000ms exceeded.", "where": None}
    hook = step(1, "hook", title="afterAll hook")
    assert said(BEGAN, over, hook, AWAKE) == (
        "it was in “afterAll hook” (s.js:1:3). Before that: Test timeout of 5000ms exceeded."
    )


def test_a_script_that_was_never_through_loading_says_so() -> None:
    assert said() == "it was still loading the script."


def test_what_comes_of_being_stopped_is_nothing_of_the_scripts() -> None:
    late = {"fact": "error", "message": "Test was interrupted", **AFTER}
    asked = {"fact": "request", "index": 0, "startedAt": 1, "method": "GET", "url": "http://a/"}
    told = book(BEGAN, step(1), AWAKE, late, {**asked, "error": "disposed", **AFTER})
    assert told.errors == []
    assert told.requests[0].error == "There was no answer when the run's time was up."


def test_the_time_that_the_script_had_is_told_beside_the_limit() -> None:
    told = book(BEGAN)
    told.take(json.dumps({"fact": "stepBegan", "id": 1, "title": "x", "category": "y"}).encode())
    assert fail_out_of_time(told, 10).message.startswith(
        "The run did not end within its limit of 10 s:"
    )
    told.stop()
    assert fail_out_of_time(told, 10).message.startswith(
        "The run was stopped after 0 s to keep its files within its limit of 10 s: "
    )
