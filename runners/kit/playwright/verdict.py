"""From what a run told and how it ended to what is to be blamed. Pure.

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
from runners.kit.isolation.endings import require_enough_memory
from runners.kit.isolation.program import Ended
from runners.kit.playwright.fact_book import FactBook
from runners.kit.playwright.facts import ErrorFact, first_error, plain_text
from runners.kit.playwright.hang_words import out_of_time, with_its_step
from runners.kit.playwright.time_up import is_time_up, with_time_up
from runners.kit.scripts.missing_modules import advice
from runners.kit.scripts.user_paths import placed
from runners.kit.secrets.cut_texts import cut

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
    book: FactBook, ended: Ended, *, limit_s: float, memory_mb: int, is_degraded: bool
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


def _wanted_memory(book: FactBook, ended: Ended) -> bool:
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


def _of_error(errors: list[ErrorFact], book: FactBook) -> Failure:
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


def _step_at(book: FactBook, where: str | None) -> str | None:
    """The last step that is written there. None: none is."""
    steps = (step for step in reversed(book.steps.values()) if step.where == where)
    found = next(steps, None)
    return None if found is None else plain_text(found.title)


def _of_end(book: FactBook, ended: Ended, *, is_degraded: bool) -> Failure | None:
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


def _of_no_end(book: FactBook, ended: Ended) -> Failure:
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
