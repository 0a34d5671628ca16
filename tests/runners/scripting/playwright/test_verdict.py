"""Whose fault it is that a script did not pass, from what was told and how it ended."""

import json
from typing import Any, Literal

import pytest

from contract.result import Failure, FailureKind, LogLine
from runners.scripting.playwright.reporter import ReporterEvents
from runners.scripting.playwright.verdict import (
    BrowserDidNotStartError,
    RunBrokeOffError,
    describe_gap,
    find_failure,
)
from sandbox.memory import TooLittleMemoryError
from sandbox.program import ProgramExit

BEGAN = {"fact": "began", "playwright": "1.65.1", "tests": 1}
PASSED = {"fact": "ended", "status": "passed"}
FAILED = {"fact": "ended", "status": "failed"}
HEAP = "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory"
CLICK = {"fact": "stepBegan", "id": 0, "title": "Click #a", "category": "x", "where": "s.js:2:3"}


def an_end(**changes: Any) -> ProgramExit:
    fields = {
        "exit_code": 0,
        "signal": None,
        "timed_out": False,
        "out_of_memory": False,
        "peak_mb": 400.4,
        "took_s": 1.0,
        "log": (),
        "facts_cut": False,
    }
    return ProgramExit(**{**fields, **changes})


def a_test(title: str, outcome: str) -> dict[str, Any]:
    status = {"expected": "passed", "unexpected": "failed"}.get(outcome, outcome)
    return {"fact": "testEnded", "title": title, "status": status, "outcome": outcome}


def gap(*facts: dict[str, Any]) -> str | None:
    book = ReporterEvents()
    for fact in facts:
        book.take(json.dumps(fact).encode())
    return describe_gap(book)


def an_error(**changes: Any) -> dict[str, Any]:
    return {"fact": "error", "message": "Error: no\nmore", "where": "s.js:1:2", **changes}


def failure(*facts: dict[str, Any], is_degraded: bool = False, **end: Any) -> Failure | None:
    book = ReporterEvents()
    for fact in facts:
        book.take(json.dumps(fact).encode())
    book.stop()
    book.take(b'{"fact": "awake", "at": 1e14}')
    return find_failure(book, an_end(**end), limit_s=240, memory_mb=1500, is_degraded=is_degraded)


def blamed(*facts: dict[str, Any], **end: Any) -> Failure:
    found = failure(*facts, **end)
    assert found is not None
    return found


def test_a_script_that_ran_to_its_end_is_to_blame_for_nothing() -> None:
    assert failure(BEGAN, PASSED) is None


def test_a_script_that_was_through_when_it_was_stopped_passes_or_fails_by_itself() -> None:
    assert failure(BEGAN, PASSED, timed_out=True, signal=9) is None
    assert blamed(BEGAN, an_error(), FAILED, timed_out=True).message == "Error: no (s.js:1:2)\nmore"
    late = {"fact": "ended", "status": "passed", "at": 1e14}
    assert blamed(BEGAN, late, timed_out=True).kind is FailureKind.TIMEOUT


def test_the_first_error_is_told_with_its_place_on_the_first_line() -> None:
    found = blamed(BEGAN, an_error(), an_error(message="Error: second"), FAILED)
    assert found.kind is FailureKind.SCRIPT
    assert found.message == "Error: no (s.js:1:2)\nmore"
    assert found.detail == {"where": "s.js:1:2", "errors": 2}


def test_that_a_tests_time_was_up_is_told_with_its_step_and_what_came_of_it() -> None:
    over = an_error(message="Test timeout of 4000ms exceeded.", where=None)
    gone = an_error(message="Error: Request context disposed.", where="s.js:2:3")
    get = {**CLICK, "title": 'GET "/api"'}
    sentence = "Error: Request context disposed. (s.js:2:3)"
    assert blamed(BEGAN, get, over, gone, FAILED).message == (
        f'Test timeout of 4000ms exceeded in “GET "/api"”: {sentence}'
    )
    assert blamed(BEGAN, over, gone, FAILED).message == (
        f"Test timeout of 4000ms exceeded: {sentence}"
    )
    assert blamed(BEGAN, gone, over, FAILED).message == sentence


def test_a_tests_time_out_without_a_place_names_the_step_that_is_open() -> None:
    over = an_error(message="Test timeout of 5000ms exceeded.", where=None)
    found = blamed(BEGAN, CLICK, over, FAILED)
    assert found.message == "Test timeout of 5000ms exceeded in “Click #a” (s.js:2:3)"
    assert found.detail["where"] == "s.js:2:3"
    logs = "Error: locator.click: Test timeout of 5000ms exceeded.\nBrowser logs:\n\n<launching> x"
    of_call = an_error(message=logs, where="s.js:2:3")
    assert blamed(BEGAN, CLICK, over, of_call, FAILED).message == found.message
    through = {"fact": "stepEnded", "id": 0, "tookMs": 1}
    assert blamed(BEGAN, CLICK, through, over, FAILED).message == over["message"]
    other = an_error(message=logs, where="s.js:9:9")
    assert blamed(BEGAN, CLICK, over, other, FAILED).detail["where"] == "s.js:9:9"
    other = an_error(message="Error: no", where=None)
    assert blamed(BEGAN, CLICK, other, FAILED).message == "Error: no"


def test_soft_errors_fail_the_check_unless_it_calls_itself_degraded() -> None:
    soft = an_error(soft=True)
    assert blamed(BEGAN, soft, FAILED).kind is FailureKind.SCRIPT
    assert failure(BEGAN, soft, FAILED, is_degraded=True) is None
    assert failure(BEGAN, soft, an_error(), FAILED, is_degraded=True) is not None


def test_memory_is_told_with_its_limit_and_its_peak() -> None:
    found = blamed(BEGAN, an_error(), out_of_memory=True, peak_mb=1612.3, signal=9)
    assert found.kind is FailureKind.OUT_OF_MEMORY
    assert found.detail == {"peakMb": 1612, "limitMb": 1500}


def test_a_page_that_crashed_when_the_system_took_processes_is_out_of_memory() -> None:
    crash = an_error(message="Error: page.evaluate: Target crashed")
    found = blamed(BEGAN, crash, FAILED, had_oom_kills=True, peak_mb=1400)
    assert found.kind is FailureKind.OUT_OF_MEMORY
    assert "used 1400 MB of memory, and this location had no more; the limit" in found.message
    assert blamed(BEGAN, crash, FAILED).kind is FailureKind.SCRIPT
    assert blamed(BEGAN, an_error(), FAILED, had_oom_kills=True).kind is FailureKind.SCRIPT


def test_a_browser_that_the_system_took_is_out_of_memory_and_no_fault_of_the_scripts() -> None:
    taken = {"fact": "browserKilled", "signal": "SIGKILL"}
    closed = an_error(message="Error: Target page, context or browser has been closed")
    found = blamed(BEGAN, taken, closed, FAILED, had_oom_kills=True, peak_mb=1400)
    assert found.kind is FailureKind.OUT_OF_MEMORY
    assert found.detail == {"peakMb": 1400, "limitMb": 1500}
    with pytest.raises(TooLittleMemoryError):
        failure(BEGAN, taken, closed, FAILED, had_oom_kills=True)
    assert blamed(BEGAN, taken, closed, FAILED).kind is FailureKind.SCRIPT
    assert failure(BEGAN, taken, PASSED, had_oom_kills=True) is None


def test_a_page_that_the_system_took_far_below_the_limit_is_our_fault() -> None:
    crash = an_error(message="Error: page.evaluate: Target crashed")
    with pytest.raises(TooLittleMemoryError, match="400 MB, and its limit is 1500 MB"):
        failure(BEGAN, crash, FAILED, had_oom_kills=True)


def test_a_heap_that_is_full_is_out_of_memory_as_well() -> None:
    end = {"log": (LogLine(after_ms=1, level="ERROR", message=HEAP),), "signal": 6}
    assert blamed(BEGAN, **end).kind is FailureKind.OUT_OF_MEMORY
    died = an_error(message="Error: worker process exited unexpectedly (code=null, signal=SIGABRT)")
    assert blamed(BEGAN, died, FAILED, **end).kind is FailureKind.OUT_OF_MEMORY


@pytest.mark.parametrize(
    ("level", "message"), [("ERROR", HEAP), ("INFO", HEAP), ("ERROR", f"our server: {HEAP}")]
)
def test_a_word_in_the_log_makes_no_passed_script_run_out_of_memory(
    level: Literal["INFO", "ERROR"], message: str
) -> None:
    log = (LogLine(after_ms=1, level=level, message=message),)
    assert failure(BEGAN, PASSED, log=log) is None
    if (level, message) != ("ERROR", HEAP):
        assert blamed(BEGAN, log=log, signal=9).kind is FailureKind.SCRIPT


@pytest.mark.parametrize("end", [{"exit_code": None, "signal": 9}, {"exit_code": 3}])
def test_who_told_of_a_pass_and_was_ended_then_has_not_passed(end: dict[str, Any]) -> None:
    told = blamed(BEGAN, PASSED, **end).message
    assert told.startswith("The script passed, and then its process ended (")


def test_a_time_out_is_told_before_the_errors_that_came_of_it() -> None:
    late = {"at": 1e14}
    found = blamed(BEGAN, CLICK, an_error(**late), {**FAILED, **late}, timed_out=True)
    assert found.kind is FailureKind.TIMEOUT
    assert "within its limit of 4 min: it was in “Click #a” (s.js:2:3)." in found.message


def test_a_browser_that_does_not_start_is_our_fault() -> None:
    told = {"fact": "launchFailed", "message": "no such file", "own": True}
    with pytest.raises(BrowserDidNotStartError, match="no such file"):
        failure(BEGAN, told, an_error(), FAILED)
    assert failure(BEGAN, told, PASSED) is None


def test_a_browser_that_never_answers_is_our_fault_before_the_time_is_up() -> None:
    begun = {"fact": "launching", "launch": "1-0", "at": 1}
    with pytest.raises(BrowserDidNotStartError):
        failure(BEGAN, CLICK, begun, timed_out=True)
    there = {"fact": "launched", "launch": "1-0"}
    assert blamed(BEGAN, CLICK, begun, there, timed_out=True).kind is FailureKind.TIMEOUT


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ({"exit_code": None, "signal": 9}, "signal 9"),
        ({"exit_code": None, "signal": 11}, "signal 11"),
        ({"exit_code": 3}, "exit code 3"),
    ],
)
def test_a_process_that_ended_untold_once_it_had_begun_is_the_scripts_fault(
    end: dict[str, Any], how: str
) -> None:
    found = blamed(BEGAN, **end)
    assert found.kind is FailureKind.SCRIPT
    assert found.message == f"The script's process was ended ({how})."


def test_a_process_that_never_began_or_that_the_system_took_is_our_fault() -> None:
    with pytest.raises(RunBrokeOffError, match="signal 9"):
        failure(exit_code=None, signal=9)
    with pytest.raises(RunBrokeOffError, match="signal 9"):
        failure(BEGAN, exit_code=None, signal=9, had_oom_kills=True)


def test_a_script_that_was_killed_from_outside_is_no_failed_check() -> None:
    with pytest.raises(RunBrokeOffError, match="signal 9"):
        failure(BEGAN, CLICK, exit_code=None, signal=9, was_killed=True)
    told = {"fact": "exited", "code": 137}
    killed = blamed(BEGAN, told, exit_code=None, signal=9, was_killed=True)
    assert killed.message == "The script ended its own process, with exit code 137."


def test_a_script_that_ends_its_process_is_its_own_fault() -> None:
    found = blamed(BEGAN, {"fact": "exited", "code": 3}, exit_code=3)
    assert found.kind is FailureKind.SCRIPT
    assert "exit code 3" in found.message


def test_a_limit_that_was_used_up_is_the_scripts_fault() -> None:
    assert blamed(BEGAN, stopped_because="It wrote too much.", signal=9).message == (
        "It wrote too much."
    )


def test_a_test_that_should_have_failed_is_named() -> None:
    passed = {"fact": "testEnded", "title": "b", "status": "passed", "outcome": "unexpected"}
    assert "“b” passed" in blamed(BEGAN, passed, FAILED).message


def test_of_several_tests_the_one_that_failed_is_named() -> None:
    tests = (a_test("shop · one", "expected"), a_test("shop two", "unexpected"))
    found = blamed({**BEGAN, "tests": 3}, an_error(test="shop two"), *tests, FAILED)
    assert found.message.endswith("\nThis is the test “shop two”; 1 of 3 tests failed.")
    assert "shop two" not in blamed(BEGAN, an_error(test="shop two"), *tests, FAILED).message


def test_a_script_whose_tests_are_all_skipped_has_a_gap() -> None:
    skipped = [a_test("one", "skipped"), a_test("two", "skipped")]
    assert gap({**BEGAN, "tests": 2}, *skipped) == "No test ran: all 2 are skipped."
    assert gap(BEGAN, skipped[0]) == "No test ran: the only one is skipped."
    assert gap({**BEGAN, "tests": 2}, skipped[0], a_test("two", "expected")) is None
    assert gap({**BEGAN, "playwright": None, "tests": 0}) is None


def test_a_script_in_which_only_was_left_has_a_gap() -> None:
    focused = {**BEGAN, "focused": True}
    assert gap(focused, a_test("one", "expected")) == (
        "`only` is left in the script: it ran 1 test, and no others that it may have."
    )
