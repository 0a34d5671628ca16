"""What a run was doing when its time was up, as a sentence. Pure."""

from typing import Final

from contract.result import Failure, FailureKind
from runners.kit.playwright.fact_book import FactBook
from runners.kit.playwright.facts import StepBegan, first_error, plain_text
from runners.kit.playwright.time_up import no_more_than_time_up
from runners.kit.secrets.cut_texts import cut
from runners.kit.time_words import stopped_early, time_limit

_MESSAGE_CHARS: Final = 2000
_ERROR_CHARS: Final = 500
_AROUND: Final = frozenset({"hook", "fixture", "test.step"})


def out_of_time(book: FactBook, limit_s: float) -> Failure:
    """The failure of a run that had to be stopped; `limit_s`: as it was set up."""
    message = f"The run {_stopped(book, limit_s)}: {_doing(book)}{_before(book)}"
    step = _open(book) or _last(book)
    detail: dict[str, str | int | float | None] = {
        "code": "RUN_TIME",
        "where": None if step is None else step.where,
        "limitSeconds": limit_s,
    }
    return Failure(kind=FailureKind.TIMEOUT, message=cut(message, _MESSAGE_CHARS), detail=detail)


def _before(book: FactBook) -> str:
    """What had gone wrong by then, which may be why it hung."""
    if not book.errors:
        return ""
    error = first_error(book.errors)
    at = f" ({error.where})" if error.where else ""
    line = plain_text(error.message).strip().split("\n")[0].rstrip(".")
    return f" Before that: {cut(line, _ERROR_CHARS)}{at}."


def _stopped(book: FactBook, limit_s: float) -> str:
    if book.stopped_after_s is None:
        return f"did not end within its limit of {time_limit(limit_s)}"
    return stopped_early(book.stopped_after_s, limit_s)


def with_its_step(message: str, where: str | None, book: FactBook) -> tuple[str, str | None]:
    """What a test says whose own time was up, with the step that it hung in, and its place.

    Playwright names that itself as a rule, but where an action never came to begin it has at most
    the browser's own log.
    """
    over, step = no_more_than_time_up(message), _open(book)
    if over is None or step is None or step.where is None or where not in {None, step.where}:
        return message, where
    told = f"{over} in “{plain_text(step.title)}”"
    return cut(told, _MESSAGE_CHARS), step.where


def _doing(book: FactBook) -> str:
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


def _under_way(book: FactBook) -> list[StepBegan]:
    return [step for key, step in book.steps.items() if key not in book.step_ends]


def _open(book: FactBook) -> StepBegan | None:
    """The innermost step of the user's that has not ended. None: there is none."""
    steps = _under_way(book)
    theirs = [step for step in steps if step.where is not None]
    return next(reversed(theirs or steps), None)


def _around(book: FactBook, inner: StepBegan) -> StepBegan | None:
    """The hook, fixture or step of the user's that the open one stands in. None: in none."""
    theirs = [step for step in _under_way(book) if step.where and step.category in _AROUND]
    return next((step for step in reversed(theirs) if step is not inner), None)


def _last(book: FactBook) -> StepBegan | None:
    """The step of the user's that ended last. None: none did."""
    ended = sorted(book.step_ends.values(), key=lambda end: end.at)
    steps = [book.steps[end.id] for end in ended if end.id in book.steps]
    return next((step for step in reversed(steps) if step.where is not None), None)


def _named(step: StepBegan) -> str:
    where = f" ({step.where})" if step.where else ""
    return f"“{plain_text(step.title)}”{where}"
