"""Why a suite did not pass: a sentence that names the test, and what its error shows. Pure."""

import re
from collections.abc import Iterable
from typing import Final

from contract.result import Failure, FailureKind, LogLine
from contract.suite_evidence import SuiteTest
from runners.kit.isolation.endings import require_enough_memory
from runners.kit.isolation.program import Ended, Limits
from runners.kit.isolation.run_time import RunTime
from runners.kit.playwright.time_up import is_time_up, with_time_up
from runners.kit.secrets.cut_texts import cut
from runners.kit.suites.facts import SuiteFacts
from runners.kit.suites.hang_words import out_of_time
from runners.kit.suites.names import named, sentence

_MISSING_BROWSER: Final = re.compile(
    r"Executable doesn't exist at \S*/(firefox|webkit)"
    r"|There is no (firefox|webkit) at this location"
)
_ERROR: Final = re.compile(r"\b\w*error\b|\bERR_|\bENOENT\b|forbidden", re.IGNORECASE)
_NO_SENTENCE: Final = re.compile(r"npm (error|ERR!)\s*((code|errno|syscall|path)\b|$)")
"""npm says these first; the sentence comes after them."""
_OF_A_STACK: Final = re.compile(r"at \S")
_CRASHED: Final = re.compile(r"\b(Target|Page) crashed")
_NOT_FOUND: Final = 127
_SAID_CHARS: Final = 300
MESSAGE_CHARS: Final = 2000


def failure_of(
    facts: SuiteFacts,
    ended: Ended,
    limits: Limits,
    *,
    time: RunTime,
    installed_s: float,
) -> Failure | None:
    """What stands between the run and a pass. None: it passed.

    `time`: as it was divided when the run began. `installed_s`: what its packages took of it.

    Raises:
        TooLittleMemoryError: this location is too small for it.
    """
    if _lacked_memory(facts, ended):
        return _out_of_memory(_during(facts), ended, limits)
    if ended.timed_out:
        return _at_stop(facts, time, installed_s)
    return (
        _ended_by_us(facts, ended)
        or _failed_test(list(facts.tests.values()))
        or _ended_early(facts)
        or _ended_badly(facts, ended)
    )


def _at_stop(facts: SuiteFacts, time: RunTime, installed_s: float) -> Failure | None:
    """Of one whose command had to be stopped: its tests may have been through by then."""
    if facts.end_in_time == "passed":
        return None
    is_through = facts.end_in_time is not None
    told = _failed_test(list(facts.tests.values())) or _ended_early(facts) if is_through else None
    return told or _out_of_time(facts, time, installed_s)


def _out_of_time(facts: SuiteFacts, time: RunTime, installed_s: float) -> Failure:
    return out_of_time(
        facts,
        limit_s=time.limit_s,
        stopped_after_s=time.stop_after_s,
        installed_s=installed_s,
    )


def first_line(text: str) -> str:
    """The line of an error that says most, within bounds."""
    lines = (line.strip() for line in text.splitlines())
    line = next((line for line in lines if line), "there was no message")
    return cut(line, _SAID_CHARS)


def _failed_by_itself(test: SuiteTest) -> bool:
    return test.outcome == "unexpected" and test.status != "interrupted"


def _ended_by_us(facts: SuiteFacts, ended: Ended) -> Failure | None:
    """A limit of the sandbox ended it that is neither memory nor time."""
    if ended.stopped_because is not None:
        return _script(f"{ended.stopped_because.rstrip('.')} ({_during(facts)}).")
    return None


def _lacked_memory(facts: SuiteFacts, ended: Ended) -> bool:
    return ended.out_of_memory or _lost_a_page(facts, ended)


def _lost_a_page(facts: SuiteFacts, ended: Ended) -> bool:
    """Whether the system took a page's process, or a browser's, for want of memory."""
    errors = [error for test in facts.tests.values() for error in test.errors]
    lost = any(map(_CRASHED.search, errors)) or (facts.browser_taken and bool(errors))
    return ended.system_took_some and lost


def _out_of_memory(during: str, ended: Ended, limits: Limits) -> Failure:
    if ended.system_took_some:
        require_enough_memory(ended.peak_mb, limits.memory_mb)
    no_more = "; this location had no more" if ended.system_took_some else ""
    return Failure(
        kind=FailureKind.OUT_OF_MEMORY,
        message=(
            f"The suite ran out of memory {during}; its limit is {limits.memory_mb} MB, "
            f"its peak was {ended.peak_mb:.0f} MB{no_more}."
        ),
        detail={"limitMb": limits.memory_mb, "peakMb": round(ended.peak_mb)},
    )


def _during(facts: SuiteFacts) -> str:
    """What was going on, as the end of a sentence."""
    running = list(facts.under_way.values())
    if running:
        more = f" and {len(running) - 1} more" if len(running) > 1 else ""
        return f"while it ran {named(running[0])}{more}"
    if facts.playwright is None:
        return "before Playwright Test began"
    failed = [test for test in facts.tests.values() if test.outcome == "unexpected"]
    if failed:
        return f"after {named(failed[-1])} had failed"
    return "before its first test" if not facts.tests else "after its last test"


def _failed_test(tests: list[SuiteTest]) -> Failure | None:
    failed = [test for test in tests if _failed_by_itself(test)]
    if not failed:
        return None
    first = failed[0]
    more = f" {len(failed) - 1} more failed." if len(failed) > 1 else ""
    cause, *rest = _cause(first).split("\n")
    told = "\n".join([f"{named(first)}: {sentence(cause.strip())}{more}", *rest])
    return Failure(
        kind=FailureKind.SCRIPT,
        message=cut(told, MESSAGE_CHARS),
        detail={
            "file": first.file,
            "line": first.line,
            "project": first.project,
            "failed": len(failed),
        },
    )


def _cause(test: SuiteTest) -> str:
    """Its first line is the sentence; the others show what was expected and seen."""
    browser = missing_browser(test.errors)
    if browser is not None:
        return f"the browser {browser} is not available at this location, only Chromium"
    told = [one.strip() for one in test.errors if one.strip()]
    if told:
        cause = next((one for one in told if not is_time_up(one)), told[0])
        time_up = next(filter(is_time_up, told), None)
        if time_up is None or cause is time_up or test.status != "timedOut":
            return cause
        return with_time_up(time_up, cause)
    return "it was expected to fail" if test.status == "passed" else f"it {_WORDS[test.status]}"


_WORDS: Final = {
    "failed": "failed",
    "timedOut": "ran into its time limit",
    "skipped": "was skipped",
    "interrupted": "was interrupted",
}


def missing_browser(errors: Iterable[str]) -> str | None:
    """Which browser a test asked for that there is none of. None: that is not what failed."""
    for error in errors:
        found = _MISSING_BROWSER.search(error)
        if found is not None:
            return found[1] or found[2]
    return None


def _ended_early(facts: SuiteFacts) -> Failure | None:
    if facts.end != "timedout":
        return None
    counts = facts.counts
    return Failure(
        kind=FailureKind.TIMEOUT,
        message=(
            f"The suite reached the globalTimeout of its own configuration{_while(facts)}; "
            f"{counts.did_not_run} of {counts.planned} tests did not run."
        ),
        detail={"code": "GLOBAL_TIMEOUT", "didNotRun": counts.did_not_run},
    )


def _while(facts: SuiteFacts) -> str:
    """Which test it interrupted."""
    stopped = [test for test in facts.tests.values() if test.status == "interrupted"]
    stopped += facts.under_way.values()
    return f" while it ran {named(stopped[0])}" if stopped else ""


def _ended_badly(facts: SuiteFacts, ended: Ended) -> Failure | None:
    """No test failed: whether the run itself did."""
    if facts.errors:
        return _script(sentence(first_line(facts.errors[0])))
    how = _how(ended)
    if facts.playwright is None:
        return _script(f"The test command ended {how} without running a test{because(ended.log)}.")
    if ended.exit_code != 0 or facts.end is None:
        return _script(f"The test command ended {how}, though no test failed{because(ended.log)}.")
    return None


def _how(ended: Ended) -> str:
    if ended.exit_code is None:
        return f"by signal {ended.signal}"
    meaning = " (a program was not found)" if ended.exit_code == _NOT_FOUND else ""
    return f"with exit code {ended.exit_code}{meaning}"


def because(log: tuple[LogLine, ...]) -> str:
    """What it said last, preferably as an error."""
    lines = [(line.level, line.message.strip()) for line in log if line.message.strip()]
    told = [(level, text) for level, text in lines if not _OF_A_STACK.match(text)]
    said = [text for level, text in told if level == "ERROR"] or [text for _, text in told]
    errors = [line for line in said if _ERROR.search(line) and not _NO_SENTENCE.match(line)]
    last = (errors or said[-1:])[:1]
    return f": {first_line(last[0]).rstrip('.')}" if last else ""


def _script(message: str) -> Failure:
    return Failure(kind=FailureKind.SCRIPT, message=message)
