"""Whether a suite passed, and who is at fault."""

import re
from collections.abc import Iterable
from typing import Final

from contract.evidence import SuiteTest
from contract.result import Failure, FailureKind, LogLine
from redaction.policy import cut
from runners.scripting.playwright.verdict import RunBrokeOffError, add_time_up, is_time_up
from runners.scripting.suites.reporter import Hang, StopState, SuiteEvents
from runners.timing import duration, stopped_early
from sandbox.exit_status import require_enough_memory
from sandbox.program import Limits, ProgramExit, RunTime

_MISSING_BROWSER: Final = re.compile(
    r"Executable doesn't exist at \S*/(firefox|webkit)"
    r"|There is no (firefox|webkit) at this location"
)
_ERROR: Final = re.compile(r"\b\w*error\b|\bERR_|\bENOENT\b|forbidden", re.IGNORECASE)
_NPM_PREAMBLE: Final = re.compile(r"npm (error|ERR!)\s*((code|errno|syscall|path)\b|$)")
"""Matches lines of npm that come before the error's sentence."""
_STACK_LINE: Final = re.compile(r"at \S")
_CRASHED: Final = re.compile(r"\b(Target|Page) crashed")
_NOT_FOUND: Final = 127
_SAID_CHARS: Final = 300
MESSAGE_CHARS: Final = 2000


def find_failure(
    facts: SuiteEvents,
    ended: ProgramExit,
    limits: Limits,
    *,
    time: RunTime,
    installed_s: float,
) -> Failure | None:
    """Find the failure of a suite's run. None: it passed.

    `time`: as divided when the run began. `installed_s`: the part that its packages took.

    Raises:
        TooLittleMemoryError: this location is too small for it.
        RunBrokeOffError: its command was killed from outside before a test failed.
    """
    if _lacked_memory(facts, ended):
        return _fail_out_of_memory(_describe_moment(facts), ended, limits)
    if ended.timed_out:
        return _judge_stopped(facts, time, installed_s)
    return (
        _fail_by_limit(facts, ended)
        or _fail_by_test(list(facts.tests.values()))
        or _fail_by_global_timeout(facts)
        or _fail_by_end(facts, ended)
    )


def _judge_stopped(facts: SuiteEvents, time: RunTime, installed_s: float) -> Failure | None:
    """Judge a suite whose command was stopped; its tests may have ended before."""
    if facts.end_in_time == "passed":
        return None
    is_through = facts.end_in_time is not None
    told = (
        _fail_by_test(list(facts.tests.values())) or _fail_by_global_timeout(facts)
        if is_through
        else None
    )
    return told or _fail_stopped(facts, time, installed_s)


def _fail_stopped(facts: SuiteEvents, time: RunTime, installed_s: float) -> Failure:
    return fail_out_of_time(
        facts,
        limit_s=time.limit_s,
        stopped_after_s=time.stop_after_s,
        installed_s=installed_s,
    )


def find_first_line(text: str) -> str:
    """Find the first line of an error that is not empty, and cut it to a limit."""
    lines = (line.strip() for line in text.splitlines())
    line = next((line for line in lines if line), "there was no message")
    return cut(line, _SAID_CHARS)


def _failed_by_itself(test: SuiteTest) -> bool:
    return test.outcome == "unexpected" and test.status != "interrupted"


def _fail_by_limit(facts: SuiteEvents, ended: ProgramExit) -> Failure | None:
    """Fail a suite that the sandbox stopped for a limit other than memory or time."""
    if ended.stopped_because is not None:
        return _fail_by_script(f"{ended.stopped_because.rstrip('.')} ({_describe_moment(facts)}).")
    return None


def _lacked_memory(facts: SuiteEvents, ended: ProgramExit) -> bool:
    return ended.out_of_memory or _has_lost_a_page(facts, ended)


def _has_lost_a_page(facts: SuiteEvents, ended: ProgramExit) -> bool:
    """Whether the OOM killer ended the process of a page or a browser."""
    errors = [error for test in facts.tests.values() for error in test.errors]
    lost = any(map(_CRASHED.search, errors)) or (facts.browser_was_killed and bool(errors))
    return ended.had_oom_kills and lost


def _fail_out_of_memory(during: str, ended: ProgramExit, limits: Limits) -> Failure:
    if ended.had_oom_kills:
        require_enough_memory(ended.peak_mb, limits.memory_mb)
    no_more = "; this location had no more" if ended.had_oom_kills else ""
    return Failure(
        kind=FailureKind.OUT_OF_MEMORY,
        message=(
            f"The suite ran out of memory {during}; its limit is {limits.memory_mb} MB, "
            f"its peak was {ended.peak_mb:.0f} MB{no_more}."
        ),
        detail={"limitMb": limits.memory_mb, "peakMb": round(ended.peak_mb)},
    )


def _describe_moment(facts: SuiteEvents) -> str:
    """Describe what the suite was doing, as the end of a sentence."""
    running = list(facts.under_way.values())
    if running:
        more = f" and {len(running) - 1} more" if len(running) > 1 else ""
        return f"while it ran {describe_test(running[0])}{more}"
    if facts.playwright is None:
        return "before Playwright Test began"
    failed = [test for test in facts.tests.values() if test.outcome == "unexpected"]
    if failed:
        return f"after {describe_test(failed[-1])} had failed"
    return "before its first test" if not facts.tests else "after its last test"


def _fail_by_test(tests: list[SuiteTest]) -> Failure | None:
    failed = [test for test in tests if _failed_by_itself(test)]
    if not failed:
        return None
    first = failed[0]
    more = f" {len(failed) - 1} more failed." if len(failed) > 1 else ""
    cause, *rest = _describe_cause(first).split("\n")
    told = "\n".join([f"{describe_test(first)}: {end_sentence(cause.strip())}{more}", *rest])
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


def _describe_cause(test: SuiteTest) -> str:
    """Describe why a test failed; lines after the first show what was expected and received."""
    browser = find_missing_browser(test.errors)
    if browser is not None:
        return f"the browser {browser} is not available at this location, only Chromium"
    told = [one.strip() for one in test.errors if one.strip()]
    if told:
        cause = next((one for one in told if not is_time_up(one)), told[0])
        time_up = next(filter(is_time_up, told), None)
        if time_up is None or cause is time_up or test.status != "timedOut":
            return cause
        return add_time_up(time_up, cause)
    return (
        "it was expected to fail" if test.status == "passed" else f"it {_STATUS_WORDS[test.status]}"
    )


_STATUS_WORDS: Final = {
    "failed": "failed",
    "timedOut": "ran into its time limit",
    "skipped": "was skipped",
    "interrupted": "was interrupted",
}


def find_missing_browser(errors: Iterable[str]) -> str | None:
    """Find the browser that a test asked for and that is missing. None: another error."""
    for error in errors:
        found = _MISSING_BROWSER.search(error)
        if found is not None:
            return found[1] or found[2]
    return None


def _fail_by_global_timeout(facts: SuiteEvents) -> Failure | None:
    if facts.end != "timedout":
        return None
    counts = facts.counts
    return Failure(
        kind=FailureKind.TIMEOUT,
        message=(
            "The suite reached the globalTimeout of its own configuration"
            f"{_describe_interrupted(facts)}; "
            f"{counts.did_not_run} of {counts.planned} tests did not run."
        ),
        detail={"code": "GLOBAL_TIMEOUT", "didNotRun": counts.did_not_run},
    )


def _describe_interrupted(facts: SuiteEvents) -> str:
    """Describe which test was interrupted."""
    stopped = [test for test in facts.tests.values() if test.status == "interrupted"]
    stopped += facts.under_way.values()
    return f" while it ran {describe_test(stopped[0])}" if stopped else ""


def _fail_by_end(facts: SuiteEvents, ended: ProgramExit) -> Failure | None:
    """Fail a run in which no test failed, but the run itself did."""
    if ended.was_killed:
        raise RunBrokeOffError(
            f"The test command was killed from outside {_describe_moment(facts)}"
        )
    if facts.errors:
        return _fail_by_script(end_sentence(find_first_line(facts.errors[0])))
    how = _describe_exit(ended)
    if facts.playwright is None:
        return _fail_by_script(
            f"The test command ended {how} without running a test{describe_last_error(ended.log)}."
        )
    if ended.exit_code != 0 or facts.end is None:
        return _fail_by_script(
            f"The test command ended {how}, though no test failed{describe_last_error(ended.log)}."
        )
    return None


def _describe_exit(ended: ProgramExit) -> str:
    if ended.exit_code is None:
        return f"by signal {ended.signal}"
    meaning = " (a program was not found)" if ended.exit_code == _NOT_FOUND else ""
    return f"with exit code {ended.exit_code}{meaning}"


def describe_last_error(log: tuple[LogLine, ...]) -> str:
    """Describe the last line of a log, preferably an error, as the end of a sentence."""
    lines = [(line.level, line.message.strip()) for line in log if line.message.strip()]
    told = [(level, text) for level, text in lines if not _STACK_LINE.match(text)]
    said = [text for level, text in told if level == "ERROR"] or [text for _, text in told]
    errors = [line for line in said if _ERROR.search(line) and not _NPM_PREAMBLE.match(line)]
    last = (errors or said[-1:])[:1]
    return f": {find_first_line(last[0]).rstrip('.')}" if last else ""


def _fail_by_script(message: str) -> Failure:
    return Failure(kind=FailureKind.SCRIPT, message=message)


_MESSAGE_CHARS: Final = 2000
_BUSY: Final = ": is there a loop without an end, or a call that blocks?"
_LEAST_INSTALLATION_S: Final = 1.0


def fail_out_of_time(
    facts: SuiteEvents, *, limit_s: float, stopped_after_s: float, installed_s: float
) -> Failure:
    """Fail a suite that was stopped at its time limit.

    `limit_s`: the limit as the check sets it. `stopped_after_s`: since the run began.
    `installed_s`: the part of that time that its packages took.
    """
    hang = next(iter(_list_hangs(facts.stop_state)), None)
    packages = ""
    if installed_s >= _LEAST_INSTALLATION_S:
        packages = f" Its packages took {duration(installed_s)} of that."
    message = f"The suite {stopped_early(stopped_after_s, limit_s)}: {_describe_activity(facts)}"
    where = None if hang is None else hang.step_where or hang.last_where
    return Failure(
        kind=FailureKind.TIMEOUT,
        message=f"{cut(message, _MESSAGE_CHARS)}{packages}",
        detail={"code": "ETIMEDOUT", "where": where, "limitSeconds": limit_s},
    )


def _list_hangs(seen: StopState) -> list[Hang]:
    return [seen.unfinished_steps[test] for test in seen.tests if test in seen.unfinished_steps]


def _describe_activity(facts: SuiteEvents) -> str:
    seen = facts.stop_state
    running = list(seen.tests.items())
    if running:
        test, about = running[0]
        activity = _describe_test_activity(seen, seen.unfinished_steps.get(test))
        others = _describe_others(len(running))
        return end_sentence(f"{describe_test(about)} {activity}{others}")
    if not seen.is_prepared:
        return _describe_preparation(seen)
    if seen.is_in_teardown and seen.preparation.teardown:
        return f"it was still in its global teardown ({seen.preparation.teardown})."
    ran = list(facts.tests.values())
    if not ran:
        return "it was about to begin its first test."
    last = f"no test was under way after {describe_test(ran[-1])}"
    return f"{last}: is a worker's fixture, a server or the global teardown still open?"


def _describe_test_activity(seen: StopState, hang: Hang | None) -> str:
    """Describe what a test was doing, to follow its name."""
    if hang is None:
        return (
            "was under way, and the test runner was busy itself"
            if not seen.awake
            else ("was under way")
        )
    is_awake = hang.worker in seen.awake
    after = f" after “{hang.last}”{_render_place(hang.last_where)}" if hang.last else ""
    if hang.step is None:
        return f"was in no step{after}" if is_awake else f"was busy{after}{_BUSY}"
    around = f", in “{hang.inside}”" if hang.inside else ""
    step = f"in “{hang.step}”{_render_place(hang.step_where)}{around}"
    return f"was {step}" if is_awake else f"was busy {step}{',' if after else ''}{after}{_BUSY}"


def _describe_others(running: int) -> str:
    if running == 1:
        return ""
    more = running - 1
    return f" ({more} more {'test was' if more == 1 else 'tests were'} under way)"


def _render_place(where: str | None) -> str:
    return f" ({where})" if where else ""


def _describe_preparation(seen: StopState) -> str:
    servers, setup = seen.preparation.servers, seen.preparation.setup
    server = f"its web server ({', '.join(servers)})"
    in_setup = f"its global setup ({setup})"
    if setup and (seen.is_in_setup or not servers):
        return f"it was still in {in_setup}."
    if servers and setup:
        return f"it was still waiting for {server}, or in {in_setup}."
    if servers:
        return f"it was still waiting for {server}."
    return "Playwright Test had not begun, or was still loading its tests."


def describe_test(test: SuiteTest) -> str:
    """Describe a test by its project, file, line and title."""
    project = f"[{test.project}] " if test.project else ""
    return f"{project}{test.file}:{test.line} › {test.title}"  # noqa: RUF001 - Playwright's own sign


def end_sentence(text: str) -> str:
    """End a text with a full stop."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
