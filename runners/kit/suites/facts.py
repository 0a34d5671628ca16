"""What a suite's reporter tells, read defensively: a suite can write these lines itself.

A line of another shape is passed over, and what is kept is bounded; a forged one changes the result
of this check alone.
"""

import time
from typing import Final

import msgspec

from contract.suite_evidence import (
    PlaywrightEvidence,
    SuiteTest,
    TestCounts,
)
from runners.kit.playwright.launches import (
    Launched,
    Launches,
    LaunchFact,
    LaunchFailed,
    Launching,
    LostLaunch,
)
from runners.kit.playwright.time_up import no_more_than_time_up
from runners.kit.scripts.user_paths import UserPaths, placed
from runners.kit.secrets.cut_texts import cut
from runners.kit.suites.fact_shapes import (
    Attachment,
    Began,
    BrowserKilled,
    Ended,
    Fact,
    SuiteError,
    TestBegan,
    TestEnded,
    TestError,
)
from runners.kit.suites.stop_facts import AtStop, Hang

MOST_TESTS: Final = 2000
MOST_ERRORS: Final = 300
MOST_ATTACHMENTS: Final = 2000
ERROR_CHARS: Final = 3000

_DECODER: Final = msgspec.json.Decoder(Fact)


class SuiteFacts:
    """What is known of a suite's run so far."""

    def __init__(self, paths: UserPaths | None = None) -> None:
        """`paths`: how the suite's author knows files. None: as they are told."""
        self._paths = paths
        self.playwright: str | None = None
        """Its version. None: it has not begun."""
        self.end: str | None = None
        """How it says that it ended. None: it does not."""
        self.end_in_time: str | None = None
        """The same, if it says so before it is asked to end. None: it does not."""
        self.launches = Launches()
        self.browser_taken = False
        """A browser was ended by SIGKILL."""
        self.attachments: list[Attachment] = []
        self.tests: dict[str, SuiteTest] = {}
        """By id, those that have ended."""
        self.under_way: dict[str, SuiteTest] = {}
        """By id, those that have begun and not ended, as if they had been interrupted."""
        self.errors: list[str] = []
        self.at_stop = AtStop()
        self.is_cut = False
        self._planned = 0
        self._began_ms: dict[str, float] = {}
        """By id, when tests began, by the calendar."""
        self._told: dict[str, list[TestError]] = {}
        """Errors by test, until their try ends."""
        self._errors_left = MOST_ERRORS

    def take(self, line: bytes) -> None:
        """Read one line."""
        try:
            fact = _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        match fact:
            case Began():
                self._open(fact)
            case TestBegan():
                self._begin(fact)
            case TestError():
                self._tell(fact)
            case TestEnded():
                self._finish(fact)
            case Attachment():
                self._attach(fact)
            case SuiteError():
                self._note(fact)
            case Launching() | Launched() | LaunchFailed() | BrowserKilled():
                self._take_of_browser(fact)
            case Ended():
                self._close(fact)
            case _:
                self.at_stop.take(fact)

    def _take_of_browser(self, fact: LaunchFact | BrowserKilled) -> None:
        if self.at_stop.is_stopped:  # Playwright closes browsers that are being started, too
            return
        if isinstance(fact, BrowserKilled):
            self.browser_taken = self.browser_taken or fact.signal == "SIGKILL"
        else:
            self.launches.take(fact)

    @property
    def lost_launch(self) -> LostLaunch | None:
        """A browser that did not start, for which we may be to blame. None: it changed nothing."""
        if self.end == "passed":
            return None
        return self.launches.lost(stopped_at_ms=self.at_stop.waiting_at_ms)

    def stop(self) -> None:
        """It is asked to end."""
        now_ms = time.time() * 1000
        for key, test in self.under_way.items():
            took_ms = max(0, round(now_ms - (self._began_ms.get(key) or now_ms)))
            self.under_way[key] = msgspec.structs.replace(test, took_ms=took_ms)
        self.at_stop.stop(self.under_way, is_prepared=self.playwright is not None, at_ms=now_ms)

    def evidence(self, *, node_version: str) -> PlaywrightEvidence:
        """The result's picture of it."""
        return PlaywrightEvidence(
            playwright_version=self.playwright,
            node_version=node_version,
            counts=self.counts,
            tests=(*self.tests.values(), *self.under_way.values()),
            errors=tuple(self.errors),
            truncated=self.is_cut,
        )

    @property
    def messages(self) -> tuple[str, ...]:
        """All errors that were told."""
        return (*self.errors, *(error for test in self.tests.values() for error in test.errors))

    def _open(self, fact: Began) -> None:
        self.playwright, self._planned = fact.playwright, fact.tests
        self.end = self.end_in_time = None  # a command may run Playwright several times

    def _close(self, fact: Ended) -> None:
        self.end = fact.status
        self.end_in_time = None if self.at_stop.is_stopped else fact.status

    def _begin(self, fact: TestBegan) -> None:
        self._told.pop(fact.test, None)
        if self._has_room(fact.test):
            self._began_ms[fact.test] = fact.at
            self.under_way[fact.test] = SuiteTest(
                project=fact.project,
                title=fact.title,
                file=fact.file,
                line=fact.line,
                status="interrupted",
                outcome="unexpected",
                took_ms=0,
            )

    def _tell(self, fact: TestError) -> None:
        if fact.test in self._told or len(self._told) < MOST_TESTS:
            told = self._told.setdefault(fact.test, [])
            told += [fact] if len(told) < MOST_ERRORS else []

    def _finish(self, fact: TestEnded) -> None:
        errors = self._affordable(self._errors_of(fact.test))
        if not self._has_room(fact.test):
            return
        before = self.tests.pop(fact.test, None)
        self.under_way.pop(fact.test, None)
        self.tests[fact.test] = SuiteTest(
            project=fact.project,
            title=fact.title,
            file=fact.file,
            line=fact.line,
            status=fact.status,
            outcome=fact.outcome,
            took_ms=round(fact.took_ms + (before.took_ms if before else 0), 3),
            retries=fact.retry,
            errors=errors or (before.errors if before else ()),
        )

    def _has_room(self, test: str) -> bool:
        if test in self.tests or len(self.tests) + len(self.under_way) < MOST_TESTS:
            return True
        self.is_cut = self.is_cut or test not in self.under_way
        return test in self.under_way

    def _errors_of(self, test: str) -> list[str]:
        """Those with a place first: that a test's time was up has none, and says less."""
        told = sorted(self._told.pop(test, []), key=lambda fact: fact.where is None)
        told = _with_step(told, self._hang_of(test))
        return [
            cut(placed(self._as_known(fact.message, fact.where), fact.where), ERROR_CHARS)
            for fact in told
        ]

    def _hang_of(self, test: str) -> Hang | None:
        """What it was in when its own time was up. None: it was in nothing, or we stopped it."""
        if self.at_stop.is_stopped:
            return None
        return self.at_stop.hangs.pop(test, None)

    def _as_known(self, message: str, where: str | None) -> str:
        return message if self._paths is None else self._paths.error(message, where)

    def _affordable(self, errors: list[str]) -> tuple[str, ...]:
        kept = tuple(errors[: self._errors_left])
        self._errors_left -= len(kept)
        self.is_cut = self.is_cut or len(kept) < len(errors)
        return kept

    def _attach(self, fact: Attachment) -> None:
        if len(self.attachments) < MOST_ATTACHMENTS:
            self.attachments.append(fact)
        else:
            self.is_cut = True

    def _note(self, fact: SuiteError) -> None:
        if self.at_stop.is_stopped:  # that is of our doing
            return
        where = f"{fact.file}:{fact.line}" if fact.file else None
        message = self._as_known(fact.message, where)
        told = f"{where}: {message}" if where else message
        self.errors += self._affordable([cut(told, ERROR_CHARS)])

    @property
    def counts(self) -> TestCounts:
        """How many tests ended how, so far."""
        ended = list(self.tests.values())
        by_outcome = {
            outcome: sum(test.outcome == outcome and _has_run(test) for test in ended)
            for outcome in ("expected", "unexpected", "flaky", "skipped")
        }
        return TestCounts(
            planned=self._planned,
            passed=by_outcome["expected"],
            failed=by_outcome["unexpected"],
            flaky=by_outcome["flaky"],
            skipped=by_outcome["skipped"],
            did_not_run=max(self._planned - sum(by_outcome.values()), 0),
        )


def _with_step(told: list[TestError], hang: Hang | None) -> list[TestError]:
    """Errors of a test with the step that it hung in, where Playwright names none."""
    if hang is None or hang.step is None or any(one.where for one in told):
        return told
    times = ((one, no_more_than_time_up(one.message)) for one in told)
    return [
        one
        if time_up is None
        else TestError(test=one.test, message=f"{time_up} in “{hang.step}”", where=hang.step_where)
        for one, time_up in times
    ]


def _has_run(test: SuiteTest) -> bool:
    return test.status != "interrupted"
