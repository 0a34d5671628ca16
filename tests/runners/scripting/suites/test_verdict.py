"""A suite that did not pass says in one sentence which test it was, and then what it saw."""

from typing import Any

import pytest

from contract.evidence import SuiteTest
from contract.result import FailureKind, LogLine
from runners.scripting.playwright.verdict import RunBrokeOffError
from runners.scripting.suites.reporter import SuiteEvents
from runners.scripting.suites.verdict import MESSAGE_CHARS, describe_last_error, find_failure
from sandbox.memory import TooLittleMemoryError
from sandbox.program import Limits, ProgramExit, RunTime

LIMITS = Limits(memory_mb=4096)


def an_end(*said: str, **changes: Any) -> ProgramExit:
    fields: dict[str, Any] = {
        "exit_code": 0,
        "signal": None,
        "timed_out": False,
        "out_of_memory": False,
        "peak_mb": 512.4,
        "took_s": 61.0,
        "log": tuple(LogLine(after_ms=0, level="ERROR", message=line) for line in said),
        "facts_cut": False,
    }
    return ProgramExit(**{**fields, **changes})


TIME = RunTime(limit_s=60, stop_after_s=45, grace_s=7.5)


def a_test(**changes: Any) -> SuiteTest:
    fields: dict[str, Any] = {
        "project": "chromium",
        "title": "basket",
        "file": "a.spec.ts",
        "line": 7,
        "status": "passed",
        "outcome": "expected",
        "took_ms": 1,
    }
    return SuiteTest(**{**fields, **changes})


def failed(*errors: str, **changes: Any) -> SuiteTest:
    return a_test(**{"status": "failed", "outcome": "unexpected", "errors": errors, **changes})


def facts(*tests: SuiteTest, under_way: tuple[SuiteTest, ...] = (), **known: Any) -> SuiteEvents:
    book = SuiteEvents()
    book.playwright, book.end = "1.65.1", "passed"
    book.tests = {str(number): test for number, test in enumerate(tests)}
    book.under_way = {f"u{number}": test for number, test in enumerate(under_way)}
    for name, value in known.items():
        setattr(book, name, value)
    return book


def said(book: SuiteEvents, end: ProgramExit) -> str:
    failure = find_failure(book, end, LIMITS, time=TIME, installed_s=0)
    assert failure is not None
    return f"{failure.kind}: {failure.message}".replace(" \u203a ", " > ")


def test_a_run_in_which_every_test_passed_has_no_failure() -> None:
    assert find_failure(facts(a_test()), an_end(), LIMITS, time=TIME, installed_s=0) is None


def test_a_suite_that_was_through_when_it_was_stopped_has_passed() -> None:
    end = an_end(timed_out=True, exit_code=None, signal=9)
    assert said(facts(a_test()), end).startswith("TIMEOUT: The suite was stopped after 45 s to ")
    book = facts(a_test(), end_in_time="passed")
    assert find_failure(book, end, LIMITS, time=TIME, installed_s=0) is None


def test_a_suite_that_had_failed_when_it_was_stopped_is_told_by_its_test() -> None:
    """Its command went on: a reporter of its own sends a report, or another command follows."""
    end = an_end(timed_out=True, exit_code=None, signal=9)
    assert said(facts(failed("Error: no lamp"), end="failed", end_in_time="failed"), end) == (
        "SCRIPT: [chromium] a.spec.ts:7 > basket: Error: no lamp."
    )
    early = facts(a_test(), end="timedout", end_in_time="timedout")
    assert "globalTimeout" in said(early, end)
    assert said(facts(a_test(), end="failed", end_in_time="failed"), end).startswith("TIMEOUT: ")
    assert said(facts(failed("Error: no"), end="failed"), end).startswith("TIMEOUT: ")


def test_a_flaky_test_is_no_failure() -> None:
    assert (
        find_failure(
            facts(a_test(outcome="flaky", retries=1)), an_end(), LIMITS, time=TIME, installed_s=0
        )
        is None
    )


@pytest.mark.parametrize(
    ("tests", "sentence"),
    [
        (
            [a_test(), failed("Error: no lamp (a.spec.ts:9:3)\n\nExpected: 1"), failed("other")],
            (
                "[chromium] a.spec.ts:7 > basket: Error: no lamp (a.spec.ts:9:3). 1 more failed."
                "\n\nExpected: 1"
            ),
        ),
        ([failed("x", project="")], "a.spec.ts:7 > basket: x."),
        (
            [failed(status="timedOut")],
            "[chromium] a.spec.ts:7 > basket: it ran into its time limit.",
        ),
        (
            [failed(status="passed")],
            "[chromium] a.spec.ts:7 > basket: it was expected to fail.",
        ),
        (
            [failed("browserType.launch: Executable doesn't exist at /b/webkit-2203/pw_run.sh")],
            (
                "[chromium] a.spec.ts:7 > basket: the browser webkit is not available at this "
                "location, only Chromium."
            ),
        ),
        (
            [failed("Error: There is no firefox at this location, only Chromium.")],
            (
                "[chromium] a.spec.ts:7 > basket: the browser firefox is not available at this "
                "location, only Chromium."
            ),
        ),
    ],
)
def test_the_first_failed_test_is_named_with_file_and_line(
    tests: list[SuiteTest], sentence: str
) -> None:
    assert said(facts(*tests), an_end(exit_code=1)) == f"SCRIPT: {sentence}"


def test_memory_names_limit_peak_and_test() -> None:
    book = facts(under_way=(a_test(),), end=None)
    end = an_end(out_of_memory=True, peak_mb=4200.4, exit_code=None, signal=9)
    assert said(book, end) == (
        "OUT_OF_MEMORY: The suite ran out of memory while it ran [chromium] a.spec.ts:7 > basket; "
        "its limit is 4096 MB, its peak was 4200 MB."
    )


def test_a_page_that_crashed_when_the_system_took_processes_is_out_of_memory() -> None:
    book = facts(failed("Error: page.goto: Page crashed"))
    assert said(book, an_end(exit_code=1)).startswith("SCRIPT: ")
    assert said(book, an_end(exit_code=1, had_oom_kills=True, peak_mb=3900)) == (
        "OUT_OF_MEMORY: The suite ran out of memory after [chromium] a.spec.ts:7 > basket had "
        "failed; its limit is 4096 MB, its peak was 3900 MB; this location had no more."
    )


def test_a_page_that_the_system_took_far_below_the_limit_is_our_fault() -> None:
    book = facts(failed("Error: page.goto: Page crashed"))
    with pytest.raises(TooLittleMemoryError, match="512 MB, and its limit is 4096 MB"):
        said(book, an_end(exit_code=1, had_oom_kills=True))


def test_the_call_in_which_a_tests_time_was_up_is_told_rather_than_that_it_was() -> None:
    over = "Test timeout of 30000ms exceeded."
    assert said(facts(failed(over, f"page.click: {over}")), an_end(exit_code=1)).endswith(
        f"basket: page.click: {over}"
    )
    assert said(facts(failed(over)), an_end(exit_code=1)).endswith(f"basket: {over}")


def test_a_browser_that_the_system_took_is_no_failure_of_a_test() -> None:
    book = facts(failed("browser has been closed"), browser_was_killed=True)
    assert said(book, an_end(exit_code=1)).startswith("SCRIPT")
    with pytest.raises(TooLittleMemoryError):
        said(book, an_end(exit_code=1, had_oom_kills=True))
    told = said(book, an_end(exit_code=1, had_oom_kills=True, peak_mb=4000))
    assert told.startswith("OUT_OF_MEMORY")


@pytest.mark.parametrize(
    ("book", "during"),
    [
        (facts(under_way=(a_test(),)), "while it ran [chromium] a.spec.ts:7 > basket"),
        (
            facts(under_way=(a_test(), a_test())),
            "while it ran [chromium] a.spec.ts:7 > basket and 1 more",
        ),
        (facts(playwright=None), "before Playwright Test began"),
        (facts(), "before its first test"),
        (facts(a_test()), "after its last test"),
        (facts(failed(), a_test()), "after [chromium] a.spec.ts:7 > basket had failed"),
    ],
)
def test_a_lack_of_memory_names_what_went_on(book: SuiteEvents, during: str) -> None:
    expected = f"OUT_OF_MEMORY: The suite ran out of memory {during}; its limit is 4096 MB"
    assert said(book, an_end(out_of_memory=True)).startswith(expected)


def test_the_suites_own_global_timeout_is_named_with_the_test_that_it_interrupted() -> None:
    stopped = failed(status="interrupted", title="pays")
    assert "configuration while it ran [chromium] a.spec.ts:7 > pays; " in said(
        facts(a_test(), stopped, end="timedout", _planned=5), an_end(exit_code=1)
    )
    book = facts(a_test(), end="timedout", _planned=5)
    assert said(book, an_end(exit_code=1)) == (
        "TIMEOUT: The suite reached the globalTimeout of its own configuration; "
        "4 of 5 tests did not run."
    )


def test_a_limit_of_the_sandbox_is_told_as_it_says() -> None:
    book = facts(under_way=(a_test(),))
    assert said(book, an_end(stopped_because="It wrote too much.", signal=9)) == (
        "SCRIPT: It wrote too much (while it ran [chromium] a.spec.ts:7 > basket)."
    )


@pytest.mark.parametrize(
    ("book", "end", "sentence"),
    [
        (
            facts(errors=["playwright.config.ts:2: Error: boom"]),
            an_end(exit_code=1),
            "playwright.config.ts:2: Error: boom.",
        ),
        (
            facts(playwright=None, end=None),
            an_end("sh: 1: mocha: not found", exit_code=127),
            (
                "The test command ended with exit code 127 (a program was not found) without "
                "running a test: sh: 1: mocha: not found."
            ),
        ),
        (
            facts(playwright=None, end=None),
            an_end(),
            "The test command ended with exit code 0 without running a test.",
        ),
        (
            facts(a_test()),
            an_end("warming up", "Error: teardown", exit_code=1),
            "The test command ended with exit code 1, though no test failed: Error: teardown.",
        ),
        (
            facts(a_test(), end=None),
            an_end(exit_code=None, signal=11),
            "The test command ended by signal 11, though no test failed.",
        ),
    ],
)
def test_a_run_that_broke_off_says_how(book: SuiteEvents, end: ProgramExit, sentence: str) -> None:
    assert said(book, end) == f"SCRIPT: {sentence}"


def test_an_installation_is_told_by_its_sentence_and_not_by_its_stack() -> None:
    said = (
        " ENOENT  ENOENT: no such file or directory, open 'patches/a.patch'",
        "    at async open (node:internal/fs/promises:640:25)",
        "    at async error (pnpm.cjs:1:1)",
    )
    log = tuple(LogLine(after_ms=0, level="ERROR", message=line) for line in said)
    assert describe_last_error(log) == f": {said[0].strip()}"
    assert describe_last_error(log[1:]) == ""


def test_an_error_of_any_kind_is_what_a_command_said() -> None:
    said = (
        "SyntaxError: playwright.config.js: Unexpected token (1:31)",
        "    at x (y.js:1:1)",
        "}",
    )
    log = tuple(LogLine(after_ms=0, level="ERROR", message=line) for line in said)
    assert describe_last_error(log) == f": {said[0]}"


def test_a_very_long_error_is_cut() -> None:
    failure = find_failure(
        facts(failed("x" * 5000)), an_end(exit_code=1), LIMITS, time=TIME, installed_s=0
    )
    assert failure is not None
    assert len(failure.message) == MESSAGE_CHARS
    assert failure.kind is FailureKind.SCRIPT


def test_that_a_tests_time_was_up_is_told_before_what_came_of_it() -> None:
    gone, over = "Error: disposed (a.spec.ts:9:3)\nCall log:", "Test timeout of 4000ms exceeded."
    end = an_end(exit_code=1)
    assert said(facts(failed(gone, over, status="timedOut")), end).endswith(
        "basket: Test timeout of 4000ms exceeded: Error: disposed (a.spec.ts:9:3).\nCall log:"
    )
    assert said(facts(failed(gone, over)), end).endswith(
        "basket: Error: disposed (a.spec.ts:9:3).\nCall log:"
    )


def test_a_suite_that_was_killed_from_outside_is_no_failed_check() -> None:
    end = an_end(exit_code=None, signal=9, was_killed=True)
    with pytest.raises(RunBrokeOffError, match="killed from outside while it ran"):
        find_failure(facts(under_way=(a_test(),)), end, LIMITS, time=TIME, installed_s=0)
