"""Collects what a run's processes tell about it, within bounds."""

import math
import time
from typing import Final, TypeVar

import msgspec

from runners.kit.playwright.facts import (
    DECODER,
    Awake,
    Began,
    BrowserKilled,
    EndedFact,
    ErrorFact,
    Exited,
    Fact,
    LevelFact,
    LogFact,
    OneOfMany,
    PageFact,
    RequestFact,
    StepBegan,
    StepEnded,
    TestBegan,
    TestEnded,
    plain_text,
)
from runners.kit.playwright.launches import Launched, Launches, LaunchFailed, Launching, LostLaunch
from runners.kit.scripts.user_paths import UserPaths

_WORKER_DIED: Final = "worker process exited unexpectedly"
"""What Playwright Test says of its test's process, before it removes what that has written."""
_CUT_OFF: Final = "There was no answer when the run's time was up."
_MOST: Final = {"pages": 200, "requests": 500, "steps": 10_000, "errors": 100, "log": 5_000}

KeyT = TypeVar("KeyT")
FactT = TypeVar("FactT")


class FactBook:
    """Collects the facts of one run."""

    def __init__(self, paths: UserPaths | None = None) -> None:
        self.paths = paths
        """How the script's author knows files. None: as they are told."""
        self.began: Began | None = None
        """None: the script was not run."""
        self.steps: dict[int, StepBegan] = {}
        self.step_ends: dict[int, StepEnded] = {}
        self.pages: dict[int, PageFact] = {}
        self.requests: dict[int, RequestFact] = {}
        self.log: list[LogFact] = []
        self.levels: list[LevelFact] = []
        self.test: str | None = None
        """The test that began last. None: none did."""
        self.tests: dict[str, TestEnded] = {}
        self.launches = Launches()
        self.ended: EndedFact | None = None
        """None: nobody told that the script was run to an end."""
        self.exited: Exited | None = None
        """None: the first process was ended from outside."""
        self.browser_signal: str | None = None
        """By which a browser was ended while it was in use, or at its end. None: none was."""
        self.is_awake = False
        """It heard that it was to end."""
        self.dropped = 0
        """Lines that are no facts, or one too many."""
        self._errors: list[ErrorFact] = []
        self._opened_at_ms = time.time() * 1000
        """When the run began, by the calendar."""
        self._stopped_at_ms = math.inf
        """When it was asked to end, by the calendar."""

    def take(self, line: bytes) -> None:
        """Note one line."""
        try:
            fact = DECODER.decode(line)
        except (msgspec.DecodeError, RecursionError):
            self.dropped += 1
            return
        if fact.at < self._stopped_at_ms:
            self._note(fact)
        else:
            self._note_after_stop(fact)

    def stop(self) -> None:
        """It is asked to end: what it comes to from now on is our doing, and not the script's."""
        self._stopped_at_ms = math.floor(time.time() * 1000)

    @property
    def stopped_after_s(self) -> float | None:
        """How long it had run when it was asked to end. None: it was not."""
        if math.isinf(self._stopped_at_ms):
            return None
        return max(0.0, (self._stopped_at_ms - self._opened_at_ms) / 1000)

    @property
    def ended_by_itself(self) -> bool:
        """Whether the script was run to an end before anybody asked for it."""
        return self.ended is not None and self.ended.at < self._stopped_at_ms

    @property
    def lost_launch(self) -> LostLaunch | None:
        """A browser that did not start, for which we may be to blame. None: it changed nothing."""
        if self.ended is not None and self.ended.status == "passed":
            return None
        was_waiting = self.is_awake and not self.ended_by_itself
        return self.launches.lost(stopped_at_ms=self._stopped_at_ms if was_waiting else None)

    @property
    def lost_process(self) -> bool:
        """Whether a process of it ended that had not come to its end."""
        return self.ended is None or any(_WORKER_DIED in one.message for one in self._errors)

    @property
    def has_all_files(self) -> bool:
        """Whether its traces and videos came to an end."""
        return not self.lost_process and self.ended is not None and not self.ended.left_open

    @property
    def errors(self) -> list[ErrorFact]:
        """Those that count: not of a test that was expected to fail, or passed in another try."""
        well = {title for title, test in self.tests.items() if test.outcome != "unexpected"}
        return [error for error in self._errors if error.test not in well]

    def _note_after_stop(self, fact: Fact) -> None:
        match fact:
            case Awake():
                self.is_awake = True
            case RequestFact():
                error = None if fact.error is None else _CUT_OFF
                self._note(msgspec.structs.replace(fact, error=error))
            case PageFact() | LogFact() | LevelFact() | EndedFact() | Exited():
                self._note(fact)
            case _:
                pass

    def _note(self, fact: Fact) -> None:
        match fact:
            case Began():
                self.began = fact
            case TestBegan():
                self.test = fact.title
            case Launching() | Launched() | LaunchFailed():
                self.launches.take(fact)
            case EndedFact():
                self.ended = fact
            case Exited():
                self.exited = fact
            case BrowserKilled():
                self.browser_signal = fact.signal
            case Awake():
                pass
            case _:
                self._collect(fact)

    def _collect(self, fact: OneOfMany) -> None:
        match fact:
            case TestEnded():
                self._put(self.tests, fact.title, fact, "steps")
            case StepBegan():
                self._put(self.steps, fact.id, fact, "steps")
            case StepEnded():
                self._put(self.step_ends, fact.id, fact, "steps")
            case PageFact():
                self._put(self.pages, fact.index, fact, "pages")
            case RequestFact():
                self._put(self.requests, fact.index, fact, "requests")
            case ErrorFact():
                self._add(self._errors, self._as_known(fact), "errors")
            case LogFact():
                self._add(self.log, fact, "log")
            case LevelFact():
                self._add(self.levels, fact, "log")

    def _as_known(self, fact: ErrorFact) -> ErrorFact:
        if self.paths is None:
            return fact
        message = self.paths.error(plain_text(fact.message), fact.where)
        return ErrorFact(message=message, where=fact.where, soft=fact.soft, test=fact.test)

    def _put(self, into: dict[KeyT, FactT], key: KeyT, fact: FactT, kind: str) -> None:
        if key in into or len(into) < _MOST[kind]:
            into[key] = fact
        else:
            self.dropped += 1

    def _add(self, into: list[FactT], fact: FactT, kind: str) -> None:
        if len(into) < _MOST[kind]:
            into.append(fact)
        else:
            self.dropped += 1
