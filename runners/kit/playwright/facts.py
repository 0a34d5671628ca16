"""What a run's processes tell about it, one JSON value per line. Pure.

The user's script runs beside our own code and may write such lines itself: each is held to its
types and sizes, and what does not fit is dropped. A forged line changes its own check's result,
and nothing else.
"""

import re
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from runners.kit.playwright.launches import LaunchFact

_ANSI: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

Text = Annotated[str, Meta(max_length=8_000)]
Count = Annotated[int, Meta(ge=0, le=1_000_000)]
Ms = Annotated[float, Meta(ge=0, le=10_000_000)]
Epoch = Annotated[float, Meta(ge=0, le=1e14)]


class _Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="fact", rename="camel", gc=False):
    at: Epoch = 0
    """By the calendar, in ms."""


class Began(_Fact, frozen=True, kw_only=True, tag="began"):
    """The script is about to be run."""

    playwright: Annotated[str, Meta(max_length=50)] | None = None
    """Version of Playwright Test. None: the script is a plain one."""
    tests: Count = 0


class TestBegan(_Fact, frozen=True, kw_only=True, tag="testBegan"):
    """A test of the script is about to be run."""

    title: Text


class TestEnded(_Fact, frozen=True, kw_only=True, tag="testEnded"):
    """A test of the script has been run once."""

    title: Text
    status: Text
    outcome: Literal["expected", "unexpected", "flaky", "skipped"]
    """Of all its tries so far."""
    errors: Count = 0


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
    """None: outside of any test."""


class PageFact(_Fact, frozen=True, kw_only=True, tag="page"):
    """All that is known of a page by now; the newest fact of a page counts."""

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
    """Something for the log that no process printed."""

    level: Literal["DEBUG", "INFO", "WARN", "ERROR"]
    message: Text


class LevelFact(_Fact, frozen=True, kw_only=True, tag="level"):
    """The script is about to print this, and means it so."""

    level: Literal["DEBUG", "WARN"]
    message: Text


class BrowserKilled(_Fact, frozen=True, kw_only=True, tag="browserKilled"):
    """A signal ended a browser."""

    signal: Annotated[str, Meta(max_length=20)]


class Awake(_Fact, frozen=True, kw_only=True, tag="awake"):
    """The script's process hears that it is to end, so nothing in it holds everything up."""


class EndedFact(_Fact, frozen=True, kw_only=True, tag="ended"):
    """The script has been run, to its end or to ours."""

    status: Literal["passed", "failed", "timedout", "interrupted"]
    left_open: bool = False
    """It ended its process while browsers were open, whose traces and videos have no end."""


class Exited(_Fact, frozen=True, kw_only=True, tag="exited"):
    """The first process ends by its own or the script's will."""

    code: int


OneOfMany = (
    TestEnded | StepBegan | StepEnded | PageFact | RequestFact | ErrorFact | LogFact | LevelFact
)
_Once = Began | TestBegan | LaunchFact | BrowserKilled | Awake | EndedFact | Exited
Fact = _Once | OneOfMany

DECODER: Final = msgspec.json.Decoder(Fact)


def plain_text(text: str) -> str:
    """Without the colours of a terminal."""
    return _ANSI.sub("", text)


def first_error(errors: list[ErrorFact]) -> ErrorFact:
    """The one to be told: where a test's time was up comes after that it was."""
    return next((error for error in errors if error.where is not None), errors[0])
