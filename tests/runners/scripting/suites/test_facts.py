"""What a suite tells is believed as far as its shape allows, and bounded."""

import json
import time
from typing import Any

import pytest

from runners.scripting.suites import reporter as suite_facts
from runners.scripting.suites.reporter import SuiteEvents

TEST = {"test": "t1", "project": "chromium", "title": "buys", "file": "a.spec.ts", "line": 3}
ENDED = {"status": "passed", "outcome": "expected", "retry": 0, "tookMs": 10}


def told(*facts: dict[str, Any]) -> SuiteEvents:
    book = SuiteEvents()
    for fact in facts:
        book.take(json.dumps(fact).encode())
    return book


def began(tests: int = 1) -> dict[str, Any]:
    return {"fact": "began", "playwright": "1.65.1", "tests": tests, "at": 5}


def test_began(**changes: Any) -> dict[str, Any]:
    return {"fact": "testBegan", **TEST, "retry": 0, **changes}


def test_ended(**changes: Any) -> dict[str, Any]:
    return {"fact": "testEnded", **TEST, **ENDED, **changes}


test_began.__test__ = test_ended.__test__ = False  # type: ignore[attr-defined]  # builders


def error(message: str, test: str = "t1", where: str | None = None) -> dict[str, Any]:
    return {"fact": "testError", "test": test, "message": message, "where": where}


def test_a_test_is_told_with_where_it_stands_and_how_it_ended() -> None:
    (test,) = told(began(), test_began(), test_ended()).evidence(node_version="24").tests
    assert (test.project, test.title, test.file, test.line) == ("chromium", "buys", "a.spec.ts", 3)
    assert (test.status, test.outcome, test.took_ms) == ("passed", "expected", 10)


def test_an_error_with_a_place_is_told_before_one_that_has_none() -> None:
    facts = told(
        began(),
        test_began(),
        error("the time was up"),
        error("click\n\nCall log:", where="a.spec.ts:4:7"),
        test_ended(status="timedOut", outcome="unexpected"),
    )
    (test,) = facts.evidence(node_version="24").tests
    assert test.errors == ("click (a.spec.ts:4:7)\n\nCall log:", "the time was up")


def test_tries_of_a_test_are_one_test_with_the_errors_of_the_last_that_had_any() -> None:
    facts = told(
        began(),
        test_began(),
        error("first"),
        test_ended(status="failed", outcome="unexpected"),
        test_began(retry=1),
        error("second"),
        test_ended(status="failed", outcome="unexpected", retry=1),
        test_began(retry=2),
        test_ended(outcome="flaky", retry=2),
    )
    (test,) = facts.evidence(node_version="24").tests
    assert (test.retries, test.took_ms, test.errors) == (2, 30, ("second",))
    assert facts.counts.flaky == 1
    assert facts.counts.failed == 0


def test_the_counts_add_up_to_what_was_planned() -> None:
    facts = told(
        began(5),
        test_ended(),
        test_ended(test="t2", status="failed", outcome="unexpected"),
        test_ended(test="t3", status="skipped", outcome="skipped"),
        test_ended(test="t4", status="interrupted", outcome="skipped"),
    )
    counts = facts.counts
    found = (counts.passed, counts.failed, counts.skipped, counts.did_not_run)
    assert found == (1, 1, 1, 2)


def test_a_test_that_did_not_end_is_told_as_interrupted() -> None:
    facts = told(began(), test_began())
    (test,) = facts.evidence(node_version="24").tests
    assert test.status == "interrupted"
    assert list(facts.under_way) == ["t1"]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff",
        b'{"fact": "unheardOf"}',
        b'{"fact": "began", "playwright": 1, "tests": 1}',
        b'{"fact": "began", "playwright": "1", "tests": -1}',
        json.dumps(test_ended(status="great")).encode(),
        json.dumps(test_ended(tookMs=-1)).encode(),
        json.dumps(test_ended(title="x" * 5000)).encode(),
        b"[" * 100_000,
    ],
)
def test_a_line_of_another_shape_is_passed_over(line: bytes) -> None:
    book = SuiteEvents()
    book.take(line)
    assert book.evidence(node_version="24") == SuiteEvents().evidence(node_version="24")


def test_more_tests_than_are_kept_are_said_to_be_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite_facts, "MOST_TESTS", 3)
    facts = told(*(test_ended(test=str(number)) for number in range(5)))
    seen = facts.evidence(node_version="24")
    assert (len(seen.tests), seen.truncated) == (3, True)


def test_more_errors_than_are_kept_are_said_to_be_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite_facts, "MOST_ERRORS", 2)
    facts = told(*(error("x") for _ in range(4)), test_ended())
    assert len(next(iter(facts.tests.values())).errors) <= 2


def test_an_error_outside_of_tests_names_its_place() -> None:
    fact = {"fact": "suiteError", "message": "boom", "file": "playwright.config.ts", "line": 2}
    assert told(fact).errors == ["playwright.config.ts:2: boom"]
    assert told({**fact, "file": ""}).errors == ["boom"]


def test_a_later_launch_makes_no_earlier_one_forgotten() -> None:
    first = {"fact": "launchFailed", "launch": "1-0", "message": "no display"}
    later = {**first, "launch": "2-0", "message": "unknown argument", "own": True}
    lost = told(first, later, {"fact": "launched", "launch": "3-0"}).lost_launch
    assert lost is not None
    assert lost.message == "no display"
    assert told(first, {"fact": "ended", "status": "passed"}).lost_launch is None


@pytest.mark.parametrize(("worker", "is_slow"), [(0, True), (-1, False)])
def test_a_launch_at_the_stop_was_slow_if_its_process_waited(worker: int, *, is_slow: bool) -> None:
    facts = told(began(), {"fact": "launching", "launch": "1-0", "at": 1})
    facts.stop()
    facts.take(json.dumps({"fact": "awake", "worker": worker}).encode())
    assert facts.lost_launch is not None
    assert facts.lost_launch.is_slow is is_slow


def test_attachments_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite_facts, "MOST_ATTACHMENTS", 1)
    fact = {
        "fact": "attachment",
        "test": "t1",
        "name": "trace",
        "path": "/x/trace.zip",
        "contentType": "application/zip",
        "retry": 0,
    }
    facts = told(fact, fact)
    assert [one.name for one in facts.attachments] == ["trace"]
    assert facts.is_cut


def test_what_becomes_of_browsers_after_the_stop_is_our_doing() -> None:
    facts = told(began(), test_began())
    facts.stop()
    launch = {"fact": "launchFailed", "message": "browser has been closed"}
    for fact in (launch, {"fact": "browserKilled", "signal": "SIGKILL"}):
        facts.take(json.dumps(fact).encode())
    assert (facts.lost_launch, facts.browser_was_killed) == (None, False)


def test_only_what_was_told_before_the_stop_was_in_time() -> None:
    passed = {"fact": "ended", "status": "passed"}
    assert told(began(), passed).end_in_time == "passed"
    late = told(began())
    late.stop()
    late.take(json.dumps(passed).encode())
    assert (late.end, late.end_in_time) == ("passed", None)


def test_the_end_of_one_of_several_commands_is_not_that_of_the_suite() -> None:
    again = told(began(), {"fact": "ended", "status": "passed"}, began())
    assert (again.end, again.end_in_time) == (None, None)


def test_a_test_that_was_stopped_took_the_time_since_it_began() -> None:
    facts = told(began(), test_began(at=time.time() * 1000 - 20_000))
    facts.stop()
    (test,) = facts.evidence(node_version="24").tests
    assert (test.status, test.took_ms >= 20_000) == ("interrupted", True)


def test_settings_that_a_suite_leaves_open_are_those_of_options_and_of_its_configuration() -> None:
    book = SuiteEvents(defaults=("workers: 4",))
    for _ in range(2):  # a command may run Playwright several times
        book.take(json.dumps({"fact": "defaults", "set": ["video: 'on'"]}).encode())
    assert book.defaults == ("workers: 4", "video: 'on'")


def test_files_of_reporters_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite_facts, "MOST_WRITTEN", 2)
    wrote = [{"fact": "wrote", "path": f"/suite/{number}"} for number in range(3)]
    assert told(*wrote).written == ["/suite/0", "/suite/1"]
