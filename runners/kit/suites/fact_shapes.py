"""The lines of a suite's reporter: a suite can write these itself, so each field is bounded."""

from typing import Annotated, Literal

import msgspec

from contract.suite_evidence import TestOutcome, TestStatus
from runners.kit.playwright.launches import LaunchFact
from runners.kit.suites.stop_facts import StopFact

_Text = Annotated[str, msgspec.Meta(max_length=4096)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
_Took = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class Attachment(msgspec.Struct, frozen=True, tag_field="fact", tag="attachment", rename="camel"):
    """A file that a test left."""

    test: _Text
    name: _Text
    path: _Text
    content_type: _Text
    retry: _Count


class Began(msgspec.Struct, frozen=True, tag_field="fact", tag="began"):
    """The suite has begun."""

    playwright: Annotated[str, msgspec.Meta(max_length=40)]
    tests: _Count


class TestBegan(msgspec.Struct, frozen=True, tag_field="fact", tag="testBegan"):
    """A test has begun."""

    test: _Text
    project: _Text
    title: _Text
    file: _Text
    line: _Count
    at: Annotated[float, msgspec.Meta(ge=0, le=1e14)] = 0
    """By the calendar, in ms. 0: it does not say."""


class TestError(msgspec.Struct, frozen=True, tag_field="fact", tag="testError"):
    """An error of a test, as it came."""

    test: _Text
    message: _Text
    where: _Text | None = None
    """Place in the suite's own files. None: it has none."""


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


class Ended(msgspec.Struct, frozen=True, tag_field="fact", tag="ended"):
    """The suite has ended."""

    status: Literal["passed", "failed", "timedout", "interrupted"]


Fact = (
    Began
    | TestBegan
    | TestError
    | TestEnded
    | Attachment
    | SuiteError
    | LaunchFact
    | BrowserKilled
    | StopFact
    | Ended
)
