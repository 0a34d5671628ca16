"""Decodes and collects what Playwright's reporter sends, one JSON value per line.

The user's script shares its process with the harness and can forge such lines. Each is checked for
types and sizes, and dropped if it does not fit. A forged line changes only its own check's result.
"""

import math
import re
import time
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import Meta

from contract.evidence import TestOutcome, TestStatus
from runners.scripting.node.files import UserPaths

_MOST_LAUNCHES: Final = 100
_LONG_MS: Final = 10_000
"""A browser usually starts in under 1 s: after this long, the machine is to blame."""
_NO_ANSWER: Final = "It had not answered when its run was over."

_Launch = Annotated[str, Meta(max_length=40)]
_Epoch = Annotated[float, Meta(ge=0, le=1e14)]


class _LaunchFact(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="fact", rename="camel", gc=False
):
    launch: _Launch = ""
    """The id of the launch, the same in all facts about one browser."""
    own: bool = False
    """Whether the script set options of its own or blocked its process, a possible cause."""
    at: _Epoch = 0
    """When it happened, in ms since the epoch."""


class Launching(_LaunchFact, frozen=True, kw_only=True, tag="launching"):
    """A browser is being started."""


class Launched(_LaunchFact, frozen=True, kw_only=True, tag="launched"):
    """A browser has started."""


class LaunchFailed(_LaunchFact, frozen=True, kw_only=True, tag="launchFailed"):
    """A browser could not be started."""

    message: Annotated[str, Meta(max_length=8_000)]
    waited_ms: Annotated[float, Meta(ge=0, le=1e9)] = 0


LaunchFact = Launching | Launched | LaunchFailed


class LostLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that did not start, possibly because of this machine."""

    message: str
    is_slow: bool
    """Whether it was waited for so long that the machine is to blame, even if it starts now."""


class Launches:
    """The browser launches of one run."""

    def __init__(self) -> None:
        self._open: dict[str, Launching] = {}
        self._failed: list[LaunchFailed] = []

    def take(self, fact: LaunchFact) -> None:
        """Note a fact from before the run was asked to end."""
        match fact:
            case Launching() if len(self._open) < _MOST_LAUNCHES:
                self._open[fact.launch] = fact
            case Launched():
                self._open.pop(fact.launch, None)
            case LaunchFailed() if len(self._failed) < _MOST_LAUNCHES:
                self._open.pop(fact.launch, None)
                self._failed.append(fact)
            case _:
                pass

    def clear(self) -> None:
        """Forget all failed launches, which the script itself caused."""
        self._open.clear()
        self._failed.clear()

    def lost(self, *, stopped_at_ms: float | None) -> LostLaunch | None:
        """Find the launch that a failure should report. None: all browsers started.

        `stopped_at_ms`: when the run was asked to end while its script waited. None: it was not
        asked, or the script blocked its process.
        """
        until_ms = 0 if stopped_at_ms is None else stopped_at_ms
        of_failed = (_build_lost_launch(one, one.message, one.waited_ms) for one in self._failed)
        of_open = (
            _build_lost_launch(one, _NO_ANSWER, until_ms - one.at) for one in self._open.values()
        )
        return min([*of_failed, *of_open], key=lambda one: not one.is_slow, default=None)


def _build_lost_launch(fact: LaunchFact, message: str, waited_ms: float) -> LostLaunch:
    return LostLaunch(message=message, is_slow=waited_ms >= _LONG_MS and not fact.own)


_ANSI: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

Text = Annotated[str, Meta(max_length=8_000)]
Count = Annotated[int, Meta(ge=0, le=1_000_000)]
Ms = Annotated[float, Meta(ge=0, le=10_000_000)]
Epoch = Annotated[float, Meta(ge=0, le=1e14)]


class _Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="fact", rename="camel", gc=False):
    at: Epoch = 0
    """When it happened, in ms since the epoch."""


class Began(_Fact, frozen=True, kw_only=True, tag="began"):
    """The script is about to be run."""

    playwright: Annotated[str, Meta(max_length=50)] | None = None
    """The version of Playwright Test. None: the script is a plain one."""
    tests: Count = 0
    focused: bool = False
    """Whether `only` chose the tests, so that others of the script do not run."""


class TestBegan(_Fact, frozen=True, kw_only=True, tag="testBegan"):
    """A test of the script is about to be run."""

    title: Text


class TestEnded(_Fact, frozen=True, kw_only=True, tag="testEnded"):
    """A test of the script has been run once."""

    title: Text
    status: TestStatus
    outcome: TestOutcome
    """The outcome of all tries of the test so far."""
    took_ms: Ms = 0
    errors: Count = 0
    folder: Text | None = None
    """The folder of its files within the output folder. None: it left no files."""


class StepBegan(_Fact, frozen=True, kw_only=True, tag="stepBegan"):
    """A step is under way."""

    id: Count
    title: Text
    category: Text
    where: Text | None = None


class StepEnded(_Fact, frozen=True, kw_only=True, tag="stepEnded"):
    """A step has ended."""

    id: Count
    took_ms: Ms
    error: Text | None = None


class ErrorFact(_Fact, frozen=True, kw_only=True, tag="error"):
    """An error of the script."""

    message: Text
    where: Text | None = None
    soft: bool = False
    test: Text | None = None
    """The title of its test. None: it happened outside of any test."""
    frame: Text | None = None
    """The lines of the script around its place. None: Playwright shows none."""


class PageFact(_Fact, frozen=True, kw_only=True, tag="page"):
    """All that is known of a page; the newest fact of a page replaces older ones."""

    index: Annotated[int, Meta(ge=0, lt=200)]
    url: Text
    console_errors: Count = 0
    network_errors: Count = 0
    document_errors: Count = 0
    ttfb: Ms | None = None
    fcp: Ms | None = None
    lcp: Ms | None = None
    cls: Annotated[float, Meta(ge=0, le=10_000)] | None = None
    tbt: Ms | None = None
    dom_content_loaded: Ms | None = None
    load: Ms | None = None


class RequestFact(_Fact, frozen=True, kw_only=True, tag="request"):
    """A call of Playwright's `request` has ended."""

    index: Annotated[int, Meta(ge=0, lt=500)]
    started_at: Epoch
    method: Annotated[str, Meta(max_length=50)]
    url: Text
    status: Annotated[int, Meta(ge=0, le=999)] | None = None
    status_text: Text = ""
    address: Annotated[str, Meta(max_length=100)] | None = None
    body_bytes: Annotated[int, Meta(ge=0, le=2**40)] | None = None
    dns: Ms | None = None
    tcp: Ms | None = None
    tls: Ms | None = None
    first_byte: Ms | None = None
    download: Ms | None = None
    total: Ms | None = None
    error: Text | None = None


class LogFact(_Fact, frozen=True, kw_only=True, tag="log"):
    """A line for the log that no process printed, such as a page's console message."""

    level: Literal["DEBUG", "INFO", "WARN", "ERROR"]
    message: Text


class LevelFact(_Fact, frozen=True, kw_only=True, tag="level"):
    """The level of a message that the script is about to print."""

    level: Literal["DEBUG", "WARN"]
    message: Text


class BrowserKilled(_Fact, frozen=True, kw_only=True, tag="browserKilled"):
    """A signal ended a browser."""

    signal: Annotated[str, Meta(max_length=20)]


class Awake(_Fact, frozen=True, kw_only=True, tag="awake"):
    """The script's process handled SIGINT, so its event loop is not blocked."""


class EndedFact(_Fact, frozen=True, kw_only=True, tag="ended"):
    """The script has run to its end, or was stopped."""

    status: Literal["passed", "failed", "timedout", "interrupted"]
    left_open: bool = False
    """Whether browsers were open when its process ended, so that files are unfinished."""


class Exited(_Fact, frozen=True, kw_only=True, tag="exited"):
    """The first process exits by itself, because the script is done or called process.exit."""

    code: int


RepeatedFact = (
    TestEnded | StepBegan | StepEnded | PageFact | RequestFact | ErrorFact | LogFact | LevelFact
)
_SingleFact = Began | TestBegan | LaunchFact | BrowserKilled | Awake | EndedFact | Exited
Fact = _SingleFact | RepeatedFact

DECODER: Final = msgspec.json.Decoder(Fact)


def strip_colours(text: str) -> str:
    """Remove ANSI escape sequences."""
    return _ANSI.sub("", text)


def find_first_error(errors: list[ErrorFact]) -> ErrorFact:
    """Find the error to report: the first with a place, as a bare time-out precedes its cause."""
    return next((error for error in errors if error.where is not None), errors[0])


_WORKER_DIED: Final = "worker process exited unexpectedly"
"""Playwright Test's message when a worker died; it then deletes the worker's files."""
_CUT_OFF: Final = "There was no answer when the run's time was up."
_MOST: Final = {"pages": 200, "requests": 500, "steps": 10_000, "errors": 100, "log": 5_000}

KeyT = TypeVar("KeyT")
FactT = TypeVar("FactT")


class ReporterEvents:
    """Collects the facts of one script run."""

    def __init__(self, paths: UserPaths | None = None) -> None:
        self.paths = paths
        """Translates paths for the script's author. None: paths stay as reported."""
        self.began: Began | None = None
        """None: the script did not begin."""
        self.steps: dict[int, StepBegan] = {}
        self.step_ends: dict[int, StepEnded] = {}
        self.pages: dict[int, PageFact] = {}
        self.requests: dict[int, RequestFact] = {}
        self.log: list[LogFact] = []
        self.levels: list[LevelFact] = []
        self.test: str | None = None
        """The title of the test that began last. None: no test began."""
        self.tests: dict[str, TestEnded] = {}
        self.launches = Launches()
        self.ended: EndedFact | None = None
        """None: no end of the script was reported."""
        self.exited: Exited | None = None
        """None: the first process did not exit by itself."""
        self.browser_signal: str | None = None
        """The signal that ended a browser. None: no browser was ended by a signal."""
        self.is_awake = False
        """Whether its process handled SIGINT."""
        self.dropped = 0
        """The number of lines that were no valid facts, or too many."""
        self._errors: list[ErrorFact] = []
        self._opened_at_ms = time.time() * 1000
        """When the run began, in ms since the epoch."""
        self._stopped_at_ms = math.inf
        """When it was asked to end, in ms since the epoch; infinity before."""

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
        """Note that it is asked to end: what happens from now on is not the script's doing."""
        self._stopped_at_ms = math.floor(time.time() * 1000)

    @property
    def stopped_after_s(self) -> float | None:
        """How long it had run when it was asked to end. None: it was not."""
        if math.isinf(self._stopped_at_ms):
            return None
        return max(0.0, (self._stopped_at_ms - self._opened_at_ms) / 1000)

    @property
    def ended_by_itself(self) -> bool:
        """Whether the script ended before it was asked to."""
        return self.ended is not None and self.ended.at < self._stopped_at_ms

    @property
    def lost_launch(self) -> LostLaunch | None:
        """A failed launch for which the machine may be to blame. None: none affected the run."""
        if self.ended is not None and self.ended.status == "passed":
            return None
        was_waiting = self.is_awake and not self.ended_by_itself
        return self.launches.lost(stopped_at_ms=self._stopped_at_ms if was_waiting else None)

    @property
    def lost_process(self) -> bool:
        """Whether one of its processes died early."""
        return self.ended is None or any(_WORKER_DIED in one.message for one in self._errors)

    @property
    def has_all_files(self) -> bool:
        """Whether its traces and videos are complete."""
        return not self.lost_process and self.ended is not None and not self.ended.left_open

    @property
    def failed_tests(self) -> list[TestEnded]:
        """The tests that count as failed, in their order."""
        return [test for test in self.tests.values() if test.outcome == "unexpected"]

    @property
    def errors(self) -> list[ErrorFact]:
        """The errors that count: not those of tests expected to fail, or passed on a retry."""
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

    def _collect(self, fact: RepeatedFact) -> None:
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
                self._add(self._errors, self._translate_paths(fact), "errors")
            case LogFact():
                self._add(self.log, fact, "log")
            case LevelFact():
                self._add(self.levels, fact, "log")

    def _translate_paths(self, fact: ErrorFact) -> ErrorFact:
        if self.paths is None:
            return fact
        message = self.paths.error(strip_colours(fact.message), fact.where)
        return msgspec.structs.replace(fact, message=message)

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
