"""Whether a script passed, and who is at fault.

From what a run told and how it ended to what is to be blamed. Pure.

| what happened                                    | is                              |
|--------------------------------------------------|---------------------------------|
| it used more memory than its limit               | OUT_OF_MEMORY                   |
| a browser did not start, nor does it for us      | ours: `BrowserDidNotStartError` |
| the run's time was up before its script's end    | TIMEOUT, with the step it was in|
| a test failed, or the script threw               | SCRIPT, with the first error    |
| the script ended its process, or used a limit up | SCRIPT                          |
| the system took of it, or its browser, and it    | ours: `TooLittleMemoryError`    |
| had used little; much: OUT_OF_MEMORY             |                                 |
| its process was ended once it had begun, or by   | SCRIPT, with how it was ended   |
| a signal or a code of its own once it had passed |                                 |
| the same, and the system took processes then     | ours: `RunBrokeOffError`        |
| its process ended before it had begun            | ours: `RunBrokeOffError`        |
"""

import re
from typing import Final

from contract.result import Failure, FailureKind
from redaction.policy import cut
from runners.scripting.node.files import placed
from runners.scripting.node.runtimes import advice
from runners.scripting.playwright.reporter import (
    ErrorFact,
    ReporterEvents,
    StepBegan,
    first_error,
    plain_text,
)
from runners.timing import stopped_early, time_limit
from sandbox.exit_status import require_enough_memory
from sandbox.program import Ended

MESSAGE_CHARS: Final = 2000
_SAID_CHARS: Final = 300
_HEAP: Final = re.compile(r"FATAL ERROR: .*JavaScript heap out of memory")
"""What V8 says before it gives up."""
_NO_TESTS: Final = "Error: No tests found"
_NEEDS_A_TEST: Final = (
    "A Playwright Test file calls `test` of @playwright/test at its top level, as in "
    "test('opens', async ({ page }) => { … }). A plain script requires `playwright`; its file's "
    "name does not end in .spec or .test."
)
_CRASHED: Final = re.compile(r"\b(Target|Page) crashed")


class BrowserDidNotStartError(RuntimeError):
    """Chromium did not start on this machine; the script had no part in it."""


class RunBrokeOffError(RuntimeError):
    """A run's process never began, or the system ended it."""


def failure_of(
    book: ReporterEvents, ended: Ended, *, limit_s: float, memory_mb: int, is_degraded: bool
) -> Failure | None:
    """What the check is to be blamed for. None: nothing.

    `limit_s`: of its time, as it was set up.
    `is_degraded`: whether the script said so; soft errors are then no failure.

    Raises:
        BrowserDidNotStartError: our fault.
        RunBrokeOffError: our fault.
        TooLittleMemoryError: this location is too small.
    """
    if ended.out_of_memory or _wanted_memory(book, ended):
        return _out_of_memory(ended, memory_mb)
    if book.lost_launch is not None:
        raise BrowserDidNotStartError(plain_text(book.lost_launch.message))
    if ended.timed_out and not book.ended_by_itself:
        return out_of_time(book, limit_s)
    if ended.stopped_because is not None:
        return _of_script(ended.stopped_because, code="LIMIT")
    errors = [error for error in book.errors if not (error.soft and is_degraded)]
    if errors:
        return _of_error(errors, book)
    return _of_end(book, ended, is_degraded=is_degraded)


def _wanted_memory(book: ReporterEvents, ended: Ended) -> bool:
    """Whether Node gave up for it, or the system took a browser or a page, which is a crash."""
    was_taken = book.browser_signal == "SIGKILL" and bool(book.errors)
    crashed = any(_CRASHED.search(one.message) for one in book.errors)
    if ended.system_took_some and (was_taken or crashed):
        return True
    gave_up = (one.level == "ERROR" and _HEAP.match(plain_text(one.message)) for one in ended.log)
    return book.lost_process and any(gave_up)


def _out_of_memory(ended: Ended, memory_mb: int) -> Failure:
    if ended.system_took_some:
        require_enough_memory(ended.peak_mb, memory_mb)
    return Failure(
        kind=FailureKind.OUT_OF_MEMORY,
        message=(
            f"The script and its browser used {ended.peak_mb:.0f} MB of memory{_no_more(ended)}; "
            f"the limit is {memory_mb} MB."
        ),
        detail={"peakMb": round(ended.peak_mb), "limitMb": memory_mb},
    )


def _no_more(ended: Ended) -> str:
    return ", and this location had no more" if ended.system_took_some else ""


def _of_error(errors: list[ErrorFact], book: ReporterEvents) -> Failure:
    error, time_up = first_error(errors), plain_text(errors[0].message)
    said, where = with_its_step(plain_text(error.message), error.where, book)
    told = placed(said, where)
    if is_time_up(time_up) and error is not errors[0]:
        told = with_time_up(time_up, told, step=_step_at(book, where))
    message = cut(told, MESSAGE_CHARS)
    return Failure(
        kind=FailureKind.SCRIPT,
        message="\n".join(filter(None, (message, _needs(message), advice(message)))),
        detail={"where": where, "errors": len(errors)},
    )


def _needs(message: str) -> str | None:
    """What a script lacks. None: it has tests."""
    return _NEEDS_A_TEST if message.startswith(_NO_TESTS) else None


def _step_at(book: ReporterEvents, where: str | None) -> str | None:
    """The last step that is written there. None: none is."""
    steps = (step for step in reversed(book.steps.values()) if step.where == where)
    found = next(steps, None)
    return None if found is None else plain_text(found.title)


def _of_end(book: ReporterEvents, ended: Ended, *, is_degraded: bool) -> Failure | None:
    """There is no error; but did it get to its end?"""
    if book.ended is None:
        return _of_no_end(book, ended)
    if book.ended.status == "passed":
        return _of_bad_end(ended)
    if is_degraded and book.errors:
        return None
    unexpected = [title for title, test in book.tests.items() if test.outcome == "unexpected"]
    if unexpected:
        return _of_script(
            f"The test “{unexpected[0]}” passed, and is marked to fail.", code="UNEXPECTED"
        )
    return _of_script("The script did not run to its end.", code="INTERRUPTED")


def _of_bad_end(ended: Ended) -> Failure | None:
    """Of one that told that it had passed: anybody in its process can write that."""
    if ended.exit_code == 0 or ended.timed_out or ended.system_took_some:
        return None
    return _of_script(
        f"The script passed, and then its process ended ({_how(ended)}).", code="EXIT"
    )


def _of_no_end(book: ReporterEvents, ended: Ended) -> Failure:
    """Nobody told of its end; where it had begun, only its script can have had a part in that."""
    if book.exited is not None:
        by = f"with exit code {book.exited.code}"
        return _of_script(f"The script ended its own process, {by}.", code="EXIT")
    if book.began is None or ended.system_took_some:
        raise RunBrokeOffError(_broke_off(ended))
    return _of_script(f"The script's process was ended ({_how(ended)}).", code="EXIT")


def _how(ended: Ended) -> str:
    return f"exit code {ended.exit_code}" if ended.signal is None else f"signal {ended.signal}"


def _broke_off(ended: Ended) -> str:
    last = next((line.message for line in reversed(ended.log) if line.message.strip()), "")
    said = f"; it said last: {cut(last, _SAID_CHARS)}" if last else ""
    return f"Node ended with {_how(ended)} and told nothing of the script's end{said}"


def _of_script(message: str, *, code: str) -> Failure:
    return Failure(kind=FailureKind.SCRIPT, message=message, detail={"code": code})


_MESSAGE_CHARS: Final = 2000
_ERROR_CHARS: Final = 500
_AROUND: Final = frozenset({"hook", "fixture", "test.step"})


def out_of_time(book: ReporterEvents, limit_s: float) -> Failure:
    """The failure of a run that had to be stopped; `limit_s`: as it was set up."""
    message = f"The run {_stopped(book, limit_s)}: {_doing(book)}{_before(book)}"
    step = _open(book) or _last(book)
    detail: dict[str, str | int | float | None] = {
        "code": "RUN_TIME",
        "where": None if step is None else step.where,
        "limitSeconds": limit_s,
    }
    return Failure(kind=FailureKind.TIMEOUT, message=cut(message, _MESSAGE_CHARS), detail=detail)


def _before(book: ReporterEvents) -> str:
    """What had gone wrong by then, which may be why it hung."""
    if not book.errors:
        return ""
    error = first_error(book.errors)
    at = f" ({error.where})" if error.where else ""
    line = plain_text(error.message).strip().split("\n")[0].rstrip(".")
    return f" Before that: {cut(line, _ERROR_CHARS)}{at}."


def _stopped(book: ReporterEvents, limit_s: float) -> str:
    if book.stopped_after_s is None:
        return f"did not end within its limit of {time_limit(limit_s)}"
    return stopped_early(book.stopped_after_s, limit_s)


def with_its_step(message: str, where: str | None, book: ReporterEvents) -> tuple[str, str | None]:
    """What a test says whose own time was up, with the step that it hung in, and its place.

    Playwright names that itself as a rule, but where an action never came to begin it has at most
    the browser's own log.
    """
    over, step = no_more_than_time_up(message), _open(book)
    if over is None or step is None or step.where is None or where not in {None, step.where}:
        return message, where
    told = f"{over} in “{plain_text(step.title)}”"
    return cut(told, _MESSAGE_CHARS), step.where


def _doing(book: ReporterEvents) -> str:
    if book.began is None:
        return "it was still loading the script."
    step, last = _open(book), _last(book)
    after = f" after {_named(last)}" if last is not None else ", before its first step"
    if step is not None and (book.is_awake or step.category == "pw:api"):
        around = _around(book, step)
        inside = "" if around is None else f", in “{plain_text(around.title)}”"
        return f"it was in {_named(step)}{inside}."
    if not book.is_awake:
        comma = "," if last is not None else ""
        inside = f" in {_named(step)}{comma}" if step is not None else ""
        return (
            f"the script itself was busy{inside}{after}: is there a loop without an end, or a "
            "call that blocks?"
        )
    return f"no step was under way{after}: is a timer, a server or a browser still open?"


def _under_way(book: ReporterEvents) -> list[StepBegan]:
    return [step for key, step in book.steps.items() if key not in book.step_ends]


def _open(book: ReporterEvents) -> StepBegan | None:
    """The innermost step of the user's that has not ended. None: there is none."""
    steps = _under_way(book)
    theirs = [step for step in steps if step.where is not None]
    return next(reversed(theirs or steps), None)


def _around(book: ReporterEvents, inner: StepBegan) -> StepBegan | None:
    """The hook, fixture or step of the user's that the open one stands in. None: in none."""
    theirs = [step for step in _under_way(book) if step.where and step.category in _AROUND]
    return next((step for step in reversed(theirs) if step is not inner), None)


def _last(book: ReporterEvents) -> StepBegan | None:
    """The step of the user's that ended last. None: none did."""
    ended = sorted(book.step_ends.values(), key=lambda end: end.at)
    steps = [book.steps[end.id] for end in ended if end.id in book.steps]
    return next((step for step in reversed(steps) if step.where is not None), None)


def _named(step: StepBegan) -> str:
    where = f" ({step.where})" if step.where else ""
    return f"“{plain_text(step.title)}”{where}"


_TIME_UP: Final = re.compile(r"(?:Test|.* hook|Fixture .*) timeout of \d+ms exceeded")
_NO_MORE: Final = re.compile(
    r"(?:Error: )?(?:[\w.]+: )?(?P<time>Test timeout of \d+ms exceeded)\.?\s*(?:Browser logs:.*)?",
    re.DOTALL,
)
_SAYS: Final = re.compile(r"timeout of \d+ms exceeded")


def is_time_up(error: str) -> bool:
    """Whether it says that a test's, a hook's or a fixture's time was up, and little more."""
    return _TIME_UP.match(error) is not None


def no_more_than_time_up(error: str) -> str | None:
    """The words that a test's time was up, where it says nothing of what it was in. None: else."""
    found = _NO_MORE.fullmatch(error)
    return None if found is None else found["time"]


def with_time_up(time_up: str, cause: str, *, step: str | None = None) -> str:
    """That time was up, with the error that came of it, which alone names another reason.

    `step`: what it was in. None: nobody knows.
    """
    if _SAYS.search(cause.split("\n", 1)[0]):
        return cause
    first = time_up.split("\n", 1)[0].rstrip(".")
    return f"{first}{f' in “{step}”' if step else ''}: {cause}"
