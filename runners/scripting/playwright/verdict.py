"""Decides from a run's facts and its exit whether a script passed, and who is at fault. Pure.

| what happened                                    | is                              |
|--------------------------------------------------|---------------------------------|
| it used more memory than its limit               | OUT_OF_MEMORY                   |
| a browser did not start, nor does it for us      | ours: `BrowserDidNotStartError` |
| the run's time was up before its script's end    | TIMEOUT, with the step it was in|
| a test failed, or the script threw               | SCRIPT, with the first error    |
| the script ended its process, or used a limit up | SCRIPT                          |
| the OOM killer ended it or its browser, and it   | ours: `TooLittleMemoryError`    |
| had used little; much: OUT_OF_MEMORY             |                                 |
| its process was ended once it had begun, or by   | SCRIPT, with how it was ended   |
| a signal or a code of its own once it had passed |                                 |
| the same, with OOM kills at the time, or by a    | ours: `RunBrokeOffError`        |
| SIGKILL that neither it nor the sandbox sent     |                                 |
| its process ended before it had begun            | ours: `RunBrokeOffError`        |
"""

import re
from typing import Final

from contract.result import Failure, FailureKind
from redaction.policy import cut
from runners.scripting.node.files import append_place
from runners.scripting.node.runtimes import suggest_module
from runners.scripting.playwright.reporter import (
    ErrorFact,
    ReporterEvents,
    StepBegan,
    find_first_error,
    strip_colours,
)
from runners.timing import stopped_early, time_limit
from sandbox.exit_status import require_enough_memory
from sandbox.program import ProgramExit

MESSAGE_CHARS: Final = 2000
_SAID_CHARS: Final = 300
_HEAP: Final = re.compile(r"FATAL ERROR: .*JavaScript heap out of memory")
"""V8's message before it aborts."""
_NO_TESTS: Final = "Error: No tests found"
_NO_SNAPSHOT: Final = "A snapshot doesn't exist at "
"""Playwright's message where it may not write one."""
_NEEDS_A_SNAPSHOT: Final = (
    "A run of a check never writes the snapshot that it compares with: make it with `test"
    " --update-snapshots` or sourceInfo.updateSnapshots, and name it in the check's snapshots."
)
_NEEDS_A_TEST: Final = (
    "A Playwright Test file calls `test` of @playwright/test at its top level, as in "
    "test('opens', async ({ page }) => { … }). A plain script requires `playwright`; its file's "
    "name does not end in .spec or .test."
)
_CRASHED: Final = re.compile(r"\b(Target|Page) crashed")


class BrowserDidNotStartError(RuntimeError):
    """Chromium did not start on this machine, which is not the script's fault."""


class RunBrokeOffError(RuntimeError):
    """A run's process ended before the script began, or was killed from outside."""


def find_failure(
    events: ReporterEvents, ended: ProgramExit, *, limit_s: float, memory_mb: int, is_degraded: bool
) -> Failure | None:
    """Find the failure of a run. None: it passed.

    `limit_s`: the time limit as the check sets it.
    `is_degraded`: whether the script reported itself degraded; soft errors are then no failure.

    Raises:
        BrowserDidNotStartError: our fault.
        RunBrokeOffError: our fault.
        TooLittleMemoryError: this location is too small.
    """
    if ended.out_of_memory or _lacked_memory(events, ended):
        return _fail_out_of_memory(ended, memory_mb)
    if events.lost_launch is not None:
        raise BrowserDidNotStartError(strip_colours(events.lost_launch.message))
    if ended.timed_out and not events.ended_by_itself:
        return fail_out_of_time(events, limit_s)
    if ended.stopped_because is not None:
        return _fail_by_script(ended.stopped_because, code="LIMIT")
    errors = [error for error in events.errors if not (error.soft and is_degraded)]
    if errors:
        return _fail_by_error(errors, events)
    return _judge_end(events, ended, is_degraded=is_degraded)


def _lacked_memory(events: ReporterEvents, ended: ProgramExit) -> bool:
    """Whether V8 ran out of heap, or the OOM killer ended a browser or crashed a page."""
    was_taken = events.browser_signal == "SIGKILL" and bool(events.errors)
    crashed = any(_CRASHED.search(one.message) for one in events.errors)
    if ended.had_oom_kills and (was_taken or crashed):
        return True
    gave_up = (
        one.level == "ERROR" and _HEAP.match(strip_colours(one.message)) for one in ended.log
    )
    return events.lost_process and any(gave_up)


def _fail_out_of_memory(ended: ProgramExit, memory_mb: int) -> Failure:
    if ended.had_oom_kills:
        require_enough_memory(ended.peak_mb, memory_mb)
    return Failure(
        kind=FailureKind.OUT_OF_MEMORY,
        message=(
            f"The script and its browser used {ended.peak_mb:.0f} MB of memory"
            f"{', and this location had no more' if ended.had_oom_kills else ''}; "
            f"the limit is {memory_mb} MB."
        ),
        detail={"peakMb": round(ended.peak_mb), "limitMb": memory_mb},
    )


def _fail_by_error(errors: list[ErrorFact], events: ReporterEvents) -> Failure:
    error, time_up = find_first_error(errors), strip_colours(errors[0].message)
    said, where = add_step(strip_colours(error.message), error.where, events)
    told = append_place(said, where)
    if is_time_up(time_up) and error is not errors[0]:
        told = add_time_up(time_up, told, step=_find_step_title(events, where))
    message = cut(told, MESSAGE_CHARS)
    further = (
        _name_test(error, events),
        _suggest_test(message),
        suggest_module(message),
        _suggest_snapshot(message),
    )
    return Failure(
        kind=FailureKind.SCRIPT,
        message="\n".join(filter(None, (message, *further))),
        detail={"where": where, "errors": len(errors)},
    )


def _name_test(error: ErrorFact, events: ReporterEvents) -> str | None:
    """Name the test of an error. None: the script has one test, or it belongs to none."""
    if error.test is None or events.began is None or events.began.tests < 2:
        return None
    title, failed = cut(strip_colours(error.test), _SAID_CHARS), len(events.failed_tests)
    return f"This is the test “{title}”; {failed} of {events.began.tests} tests failed."


def _suggest_snapshot(message: str) -> str | None:
    """Say where a missing snapshot comes from; None: the message is about something else."""
    return _NEEDS_A_SNAPSHOT if _NO_SNAPSHOT in message else None


def _suggest_test(message: str) -> str | None:
    """Explain why Playwright Test found no tests. None: it found some."""
    return _NEEDS_A_TEST if message.startswith(_NO_TESTS) else None


def _find_step_title(events: ReporterEvents, where: str | None) -> str | None:
    """Find the title of the last step at a place. None: there is none."""
    steps = (step for step in reversed(events.steps.values()) if step.where == where)
    found = next(steps, None)
    return None if found is None else strip_colours(found.title)


def _judge_end(events: ReporterEvents, ended: ProgramExit, *, is_degraded: bool) -> Failure | None:
    """Judge a run without errors by whether the script reached its end."""
    if events.ended is None:
        return _fail_without_end(events, ended)
    if events.ended.status == "passed":
        return _judge_exit(ended)
    if is_degraded and events.errors:
        return None
    unexpected = [title for title, test in events.tests.items() if test.outcome == "unexpected"]
    if unexpected:
        return _fail_by_script(
            f"The test “{unexpected[0]}” passed, and is marked to fail.", code="UNEXPECTED"
        )
    return _fail_by_script("The script did not run to its end.", code="INTERRUPTED")


def describe_gap(events: ReporterEvents) -> str | None:
    """Describe tests that a passed script left out. None: at least one ran, and all could.

    Such a script may have stopped checking anything, and nobody notices a run that passes.
    """
    if events.began is None or not events.tests:
        return None
    if all(test.outcome == "skipped" for test in events.tests.values()):
        return f"No test ran: {_count_tests(events.began.tests)} skipped."
    if events.began.focused:
        ran = "1 test" if events.began.tests == 1 else f"{events.began.tests} tests"
        return f"`only` is left in the script: it ran {ran}, and no others that it may have."
    return None


def _count_tests(tests: int) -> str:
    return "the only one is" if tests == 1 else f"all {tests} are"


def _judge_exit(ended: ProgramExit) -> Failure | None:
    """Judge the exit of a script that reported a pass, which its process could have forged."""
    if ended.exit_code == 0 or ended.timed_out or ended.had_oom_kills or ended.was_killed:
        return None
    return _fail_by_script(
        f"The script passed, and then its process ended ({_describe_exit(ended)}).", code="EXIT"
    )


def _fail_without_end(events: ReporterEvents, ended: ProgramExit) -> Failure:
    """Fail a run that reported no end; if it had begun, only its script can have caused that."""
    if events.exited is not None:
        by = f"with exit code {events.exited.code}"
        return _fail_by_script(f"The script ended its own process, {by}.", code="EXIT")
    if events.began is None or ended.had_oom_kills or ended.was_killed:
        raise RunBrokeOffError(_describe_broken_run(ended))
    return _fail_by_script(
        f"The script's process was ended ({_describe_exit(ended)}).", code="EXIT"
    )


def _describe_exit(ended: ProgramExit) -> str:
    return f"exit code {ended.exit_code}" if ended.signal is None else f"signal {ended.signal}"


def _describe_broken_run(ended: ProgramExit) -> str:
    last = next((line.message for line in reversed(ended.log) if line.message.strip()), "")
    said = f"; it said last: {cut(last, _SAID_CHARS)}" if last else ""
    return f"Node ended with {_describe_exit(ended)} and told nothing of the script's end{said}"


def _fail_by_script(message: str, *, code: str) -> Failure:
    return Failure(kind=FailureKind.SCRIPT, message=message, detail={"code": code})


_MESSAGE_CHARS: Final = 2000
_ERROR_CHARS: Final = 500
_AROUND: Final = frozenset({"hook", "fixture", "test.step"})


def fail_out_of_time(events: ReporterEvents, limit_s: float) -> Failure:
    """The failure of a run that had to be stopped; `limit_s`: its limit as the check sets it."""
    activity, earlier = _describe_activity(events), _describe_earlier_error(events)
    message = f"The run {_describe_stop(events, limit_s)}: {activity}{earlier}"
    step = _find_open_step(events) or _find_last_step(events)
    detail: dict[str, str | int | float | None] = {
        "code": "RUN_TIME",
        "where": None if step is None else step.where,
        "limitSeconds": limit_s,
    }
    return Failure(kind=FailureKind.TIMEOUT, message=cut(message, _MESSAGE_CHARS), detail=detail)


def _describe_earlier_error(events: ReporterEvents) -> str:
    """Describe an error from before the stop, which may be why the run hung."""
    if not events.errors:
        return ""
    error = find_first_error(events.errors)
    at = f" ({error.where})" if error.where else ""
    line = strip_colours(error.message).strip().split("\n")[0].rstrip(".")
    return f" Before that: {cut(line, _ERROR_CHARS)}{at}."


def _describe_stop(events: ReporterEvents, limit_s: float) -> str:
    if events.stopped_after_s is None:
        return f"did not end within its limit of {time_limit(limit_s)}"
    return stopped_early(events.stopped_after_s, limit_s)


def add_step(message: str, where: str | None, events: ReporterEvents) -> tuple[str, str | None]:
    """Add the step in which a test hung to its time-out error; return the message and its place.

    Playwright usually names the step itself, except where an action never began.
    """
    over, step = match_bare_time_up(message), _find_open_step(events)
    if over is None or step is None or step.where is None or where not in {None, step.where}:
        return message, where
    told = f"{over} in “{strip_colours(step.title)}”"
    return cut(told, _MESSAGE_CHARS), step.where


def _describe_activity(events: ReporterEvents) -> str:
    if events.began is None:
        return "it was still loading the script."
    step, last = _find_open_step(events), _find_last_step(events)
    after = f" after {_describe_step(last)}" if last is not None else ", before its first step"
    if step is not None and (events.is_awake or step.category == "pw:api"):
        around = _find_enclosing_step(events, step)
        inside = "" if around is None else f", in “{strip_colours(around.title)}”"
        return f"it was in {_describe_step(step)}{inside}."
    if not events.is_awake:
        comma = "," if last is not None else ""
        inside = f" in {_describe_step(step)}{comma}" if step is not None else ""
        return (
            f"the script itself was busy{inside}{after}: is there a loop without an end, or a "
            "call that blocks?"
        )
    return f"no step was under way{after}: is a timer, a server or a browser still open?"


def _list_open_steps(events: ReporterEvents) -> list[StepBegan]:
    return [step for key, step in events.steps.items() if key not in events.step_ends]


def _find_open_step(events: ReporterEvents) -> StepBegan | None:
    """Find the innermost step of the user's code that has not ended. None: there is none."""
    steps = _list_open_steps(events)
    theirs = [step for step in steps if step.where is not None]
    return next(reversed(theirs or steps), None)


def _find_enclosing_step(events: ReporterEvents, inner: StepBegan) -> StepBegan | None:
    """Find the user's hook, fixture or step around an open step. None: there is none."""
    theirs = [step for step in _list_open_steps(events) if step.where and step.category in _AROUND]
    return next((step for step in reversed(theirs) if step is not inner), None)


def _find_last_step(events: ReporterEvents) -> StepBegan | None:
    """Find the user's step that ended last. None: none ended."""
    ended = sorted(events.step_ends.values(), key=lambda end: end.at)
    steps = [events.steps[end.id] for end in ended if end.id in events.steps]
    return next((step for step in reversed(steps) if step.where is not None), None)


def _describe_step(step: StepBegan) -> str:
    where = f" ({step.where})" if step.where else ""
    return f"“{strip_colours(step.title)}”{where}"


_TIME_UP: Final = re.compile(r"(?:Test|.* hook|Fixture .*) timeout of \d+ms exceeded")
_BARE_TIME_UP: Final = re.compile(
    r"(?:Error: )?(?:[\w.]+: )?(?P<time>Test timeout of \d+ms exceeded)\.?\s*(?:Browser logs:.*)?",
    re.DOTALL,
)
_MENTIONS_TIME_UP: Final = re.compile(r"timeout of \d+ms exceeded")


def is_time_up(error: str) -> bool:
    """Whether an error only says that the time of a test, hook or fixture was up."""
    return _TIME_UP.match(error) is not None


def match_bare_time_up(error: str) -> str | None:
    """Match a time-out error that names no step, and return its first words. None: no match."""
    found = _BARE_TIME_UP.fullmatch(error)
    return None if found is None else found["time"]


def add_time_up(time_up: str, cause: str, *, step: str | None = None) -> str:
    """Put a time-out before the error that it caused, which by itself names another reason.

    `step`: the step in progress. None: it is unknown.
    """
    if _MENTIONS_TIME_UP.search(cause.split("\n", 1)[0]):
        return cause
    first = time_up.split("\n", 1)[0].rstrip(".")
    return f"{first}{f' in “{step}”' if step else ''}: {cause}"
