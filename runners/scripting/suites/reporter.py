"""Decodes and collects what a suite's reporter sends, one JSON value per line.

A suite can forge these lines. Malformed lines are skipped, and what is kept is bounded; a forged
line changes only this check's result.
"""

import time
from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from contract.evidence import PlaywrightEvidence, SuiteTest, TestCounts, TestOutcome, TestStatus
from redaction.policy import cut
from runners.scripting.node.files import UserPaths, append_place
from runners.scripting.playwright.reporter import (
    Launched,
    Launches,
    LaunchFact,
    LaunchFailed,
    Launching,
    LostLaunch,
)
from runners.scripting.playwright.verdict import match_bare_time_up

_Text = Annotated[str, msgspec.Meta(max_length=4096)]


class Preparation(msgspec.Struct, frozen=True, tag_field="fact", tag="prepares"):
    """What the suite's configuration starts before the tests."""

    servers: Annotated[tuple[_Text, ...], msgspec.Meta(max_length=5)] = ()
    """The suite's web servers, by program and address."""
    setup: _Text | None = None
    """The file of its global setup. None: there is none."""
    teardown: _Text | None = None
    """The file of its global teardown. None: there is none."""


class SetupBegan(msgspec.Struct, frozen=True, tag_field="fact", tag="inSetup"):
    """The suite's global setup has begun."""


class TeardownBegan(msgspec.Struct, frozen=True, tag_field="fact", tag="inTeardown"):
    """The suite's global teardown has begun."""


class Awake(msgspec.Struct, frozen=True, tag_field="fact", tag="awake"):
    """A process handled SIGINT, so its event loop is not blocked."""

    worker: int
    """The index of the worker; -1: the test runner."""


class Hang(msgspec.Struct, frozen=True, tag_field="fact", tag="hung", rename="camel"):
    """What a test was doing when the suite was stopped, or when its own time was up."""

    test: _Text
    worker: int
    step: _Text | None = None
    """The step in progress. None: there was none."""
    step_where: _Text | None = None
    inside: _Text | None = None
    """The user's hook, fixture or step around it. None: there is none."""
    last: _Text | None = None
    """The step that ended last. None: none ended."""
    last_where: _Text | None = None


StopFact = Preparation | SetupBegan | TeardownBegan | Awake | Hang


class StopState:
    """What was in progress in a suite when it was stopped."""

    def __init__(self) -> None:
        self.is_stopped = False
        self.preparation = Preparation()
        self.is_in_setup = False
        """Whether its global setup had begun."""
        self.is_in_teardown = False
        """Whether its global teardown had begun."""
        self.is_prepared = True
        """Whether its web servers and its global setup were done."""
        self.awake: set[int] = set()
        """Workers that handled SIGINT; -1: the test runner."""
        self.unfinished_steps: dict[str, Hang] = {}
        """What tests were doing, by their ids."""
        self.tests: Mapping[str, SuiteTest] = {}
        """The tests that were in progress, by their ids."""
        self._at_ms: float | None = None
        """When it was stopped, in ms since the epoch. None: it was not stopped."""

    @property
    def waiting_at_ms(self) -> float | None:
        """When it was stopped while a worker waited. None: none waited, or it was not stopped."""
        return self._at_ms if any(worker >= 0 for worker in self.awake) else None

    def take(self, fact: StopFact) -> None:
        """Note a fact."""
        match fact:
            case Preparation():
                self.preparation = fact
            case SetupBegan():
                self.is_in_setup = True
            case TeardownBegan():
                self.is_in_teardown = True
            case Awake():
                self.awake.add(fact.worker)
            case Hang():
                self.unfinished_steps[fact.test] = fact

    def stop(self, tests: Mapping[str, SuiteTest], *, is_prepared: bool, at_ms: float = 0) -> None:
        """Note that the suite was asked to end while these tests were in progress."""
        self.is_stopped, self.is_prepared, self._at_ms = True, is_prepared, at_ms
        self.tests = dict(tests)


_Count = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
_Took = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class Attachment(msgspec.Struct, frozen=True, tag_field="fact", tag="attachment", rename="camel"):
    """A file that a test left."""

    test: _Text
    name: _Text
    path: _Text
    content_type: _Text
    retry: _Count


class Wrote(msgspec.Struct, frozen=True, tag_field="fact", tag="wrote"):
    """A reporter of the suite's own writes a file or a folder."""

    path: _Text


class Began(msgspec.Struct, frozen=True, tag_field="fact", tag="began"):
    """The suite has begun."""

    playwright: Annotated[str, msgspec.Meta(max_length=40)]
    tests: _Count


class Defaults(msgspec.Struct, frozen=True, tag_field="fact", tag="defaults"):
    """What was set of the configuration because the suite left it open."""

    set: Annotated[tuple[_Text, ...], msgspec.Meta(max_length=5)]


class TestBegan(msgspec.Struct, frozen=True, tag_field="fact", tag="testBegan"):
    """A test has begun."""

    test: _Text
    project: _Text
    title: _Text
    file: _Text
    line: _Count
    at: Annotated[float, msgspec.Meta(ge=0, le=1e14)] = 0
    """When it began, in ms since the epoch. 0: it is unknown."""


class TestError(msgspec.Struct, frozen=True, tag_field="fact", tag="testError"):
    """An error of a test."""

    test: _Text
    message: _Text
    where: _Text | None = None
    """The place in the suite's own files. None: there is none."""


class TestEnded(msgspec.Struct, frozen=True, tag_field="fact", tag="testEnded", rename="camel"):
    """One try of a test has ended."""

    test: _Text
    project: _Text
    title: _Text
    file: _Text
    line: _Count
    status: TestStatus
    outcome: TestOutcome
    retry: _Count
    took_ms: _Took


class SuiteError(msgspec.Struct, frozen=True, tag_field="fact", tag="suiteError"):
    """An error outside of every test."""

    message: _Text
    file: _Text
    line: _Count


class BrowserKilled(msgspec.Struct, frozen=True, tag_field="fact", tag="browserKilled"):
    """A browser was ended by a signal."""

    signal: _Text


class SuiteEnded(msgspec.Struct, frozen=True, tag_field="fact", tag="ended"):
    """The suite has ended."""

    status: Literal["passed", "failed", "timedout", "interrupted"]


Fact = (
    Began
    | Defaults
    | TestBegan
    | TestError
    | TestEnded
    | Attachment
    | Wrote
    | SuiteError
    | LaunchFact
    | BrowserKilled
    | StopFact
    | SuiteEnded
)


MOST_TESTS: Final = 2000
MOST_ERRORS: Final = 300
MOST_ATTACHMENTS: Final = 2000
MOST_WRITTEN: Final = 2000
ERROR_CHARS: Final = 3000

_DECODER: Final = msgspec.json.Decoder(Fact)


class SuiteEvents:
    """Collects the facts of a suite's run."""

    def __init__(self, paths: UserPaths | None = None, *, defaults: tuple[str, ...] = ()) -> None:
        """Take nothing yet.

        `paths`: translates paths for the suite's author. None: paths stay as reported.
        `defaults`: settings that the suite leaves open, with the values that options give them.
        """
        self._paths = paths
        self.playwright: str | None = None
        """The version of Playwright. None: the suite has not begun."""
        self.end: str | None = None
        """The status with which it ended. None: it reported no end."""
        self.end_in_time: str | None = None
        """The status with which it ended before it was asked to. None: it did not."""
        self.defaults = defaults
        """Settings that the suite leaves open, with the values that they got."""
        self.launches = Launches()
        self.browser_was_killed = False
        """Whether a browser was ended by SIGKILL."""
        self.attachments: list[Attachment] = []
        self.written: list[str] = []
        """The paths of files and folders that the suite's own reporters wrote."""
        self.tests: dict[str, SuiteTest] = {}
        """The tests that have ended, by id."""
        self.under_way: dict[str, SuiteTest] = {}
        """The tests in progress, by id, with the status of interrupted ones."""
        self.errors: list[str] = []
        self.stop_state = StopState()
        self.is_cut = False
        self._planned = 0
        self._began_ms: dict[str, float] = {}
        """When tests began, in ms since the epoch, by id."""
        self._open_errors: dict[str, list[TestError]] = {}
        """The errors of tests whose try has not ended, by id."""
        self._errors_left = MOST_ERRORS

    def take(self, line: bytes) -> None:
        """Read one line."""
        try:
            fact = _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        match fact:
            case Began() | Defaults():
                self._note_began(fact)
            case TestBegan():
                self._note_test_began(fact)
            case TestError():
                self._note_test_error(fact)
            case TestEnded():
                self._note_test_ended(fact)
            case Attachment() | Wrote():
                self._note_file(fact)
            case SuiteError():
                self._note_suite_error(fact)
            case Launching() | Launched() | LaunchFailed() | BrowserKilled():
                self._take_browser_fact(fact)
            case SuiteEnded():
                self._note_ended(fact)
            case _:
                self.stop_state.take(fact)

    def _take_browser_fact(self, fact: LaunchFact | BrowserKilled) -> None:
        if self.stop_state.is_stopped:  # Playwright also closes browsers that are starting
            return
        if isinstance(fact, BrowserKilled):
            self.browser_was_killed = self.browser_was_killed or fact.signal == "SIGKILL"
        else:
            self.launches.take(fact)

    @property
    def lost_launch(self) -> LostLaunch | None:
        """A failed launch for which the machine may be to blame. None: none affected the run."""
        if self.end == "passed":
            return None
        return self.launches.lost(stopped_at_ms=self.stop_state.waiting_at_ms)

    def stop(self) -> None:
        """Note that the suite was asked to end."""
        now_ms = time.time() * 1000
        for key, test in self.under_way.items():
            took_ms = max(0, round(now_ms - (self._began_ms.get(key) or now_ms)))
            self.under_way[key] = msgspec.structs.replace(test, took_ms=took_ms)
        self.stop_state.stop(self.under_way, is_prepared=self.playwright is not None, at_ms=now_ms)

    def evidence(self, *, node_version: str) -> PlaywrightEvidence:
        """Build the evidence of the result."""
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
        """All reported errors."""
        return (*self.errors, *(error for test in self.tests.values() for error in test.errors))

    def _note_began(self, fact: Began | Defaults) -> None:
        if isinstance(fact, Defaults):
            self.defaults = tuple(dict.fromkeys((*self.defaults, *fact.set)))
            return
        self.playwright, self._planned = fact.playwright, fact.tests
        self.end = self.end_in_time = None  # a command may run Playwright several times

    def _note_ended(self, fact: SuiteEnded) -> None:
        self.end = fact.status
        self.end_in_time = None if self.stop_state.is_stopped else fact.status

    def _note_test_began(self, fact: TestBegan) -> None:
        self._open_errors.pop(fact.test, None)
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

    def _note_test_error(self, fact: TestError) -> None:
        if fact.test in self._open_errors or len(self._open_errors) < MOST_TESTS:
            told = self._open_errors.setdefault(fact.test, [])
            told += [fact] if len(told) < MOST_ERRORS else []

    def _note_test_ended(self, fact: TestEnded) -> None:
        errors = self._clip_errors(self._take_errors(fact.test))
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

    def _take_errors(self, test: str) -> list[str]:
        """Take a test's errors, those with a place first: a bare time-out has no place."""
        told = sorted(self._open_errors.pop(test, []), key=lambda fact: fact.where is None)
        told = _add_step(told, self._take_hang(test))
        return [
            cut(
                append_place(self._translate_paths(fact.message, fact.where), fact.where),
                ERROR_CHARS,
            )
            for fact in told
        ]

    def _take_hang(self, test: str) -> Hang | None:
        """Take what a test was doing when its own time was up. None: nothing, or we stopped it."""
        if self.stop_state.is_stopped:
            return None
        return self.stop_state.unfinished_steps.pop(test, None)

    def _translate_paths(self, message: str, where: str | None) -> str:
        return message if self._paths is None else self._paths.error(message, where)

    def _clip_errors(self, errors: list[str]) -> tuple[str, ...]:
        kept = tuple(errors[: self._errors_left])
        self._errors_left -= len(kept)
        self.is_cut = self.is_cut or len(kept) < len(errors)
        return kept

    def _note_file(self, fact: Attachment | Wrote) -> None:
        if isinstance(fact, Wrote):
            self.written += [fact.path] if len(self.written) < MOST_WRITTEN else []
        elif len(self.attachments) < MOST_ATTACHMENTS:
            self.attachments.append(fact)
        else:
            self.is_cut = True

    def _note_suite_error(self, fact: SuiteError) -> None:
        if self.stop_state.is_stopped:  # the stop itself causes such errors
            return
        where = f"{fact.file}:{fact.line}" if fact.file else None
        message = self._translate_paths(fact.message, where)
        told = f"{where}: {message}" if where else message
        self.errors += self._clip_errors([cut(told, ERROR_CHARS)])

    @property
    def counts(self) -> TestCounts:
        """The number of tests by outcome, so far."""
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


def _add_step(told: list[TestError], hang: Hang | None) -> list[TestError]:
    """Add the step in which a test hung to its errors, where Playwright names none."""
    if hang is None or hang.step is None or any(one.where for one in told):
        return told
    times = ((one, match_bare_time_up(one.message)) for one in told)
    return [
        one
        if time_up is None
        else TestError(test=one.test, message=f"{time_up} in “{hang.step}”", where=hang.step_where)
        for one, time_up in times
    ]


def _has_run(test: SuiteTest) -> bool:
    return test.status != "interrupted"
