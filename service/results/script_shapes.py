"""Shapes of scripted checks' results, for the API document; `script_views` makes the values."""

from typing import Any, Literal

from pydantic import Field

from service.http.strict import Shown


class LogLineShown(Shown):
    """One line of a run's log."""

    time: int
    """Milliseconds since 1970."""
    msg: str
    level: Literal["DEBUG", "INFO", "WARN", "ERROR"]


class VitalShown(Shown):
    """A measure of a page."""

    value: float
    """Milliseconds; of CLS a score."""
    score: Literal["GOOD", "NEEDS_IMPROVEMENT", "POOR"]


class WebVitalsShown(Shown):
    """The measures of a page. Null: the page did not tell, or was left before."""

    ttfb: VitalShown | None = Field(alias="TTFB")
    fcp: VitalShown | None = Field(alias="FCP")
    lcp: VitalShown | None = Field(alias="LCP")
    cls: VitalShown | None = Field(alias="CLS")
    tbt: VitalShown | None = Field(alias="TBT")


class PageTimingsShown(Shown):
    """Milliseconds from the start of a page's navigation. Null: the page did not get so far."""

    on_content_load: float | None
    on_load: float | None


class PageShown(Shown):
    """One document that the browser showed."""

    page_index: int
    """From 0, in the order of the run."""
    url: str
    web_vitals: WebVitalsShown
    page_timings: PageTimingsShown
    console_errors: int
    network_errors: int
    document_errors: int


class TraceSummaryShown(Shown):
    """How many errors there were, over all pages."""

    console_errors: int
    network_errors: int
    document_errors: int
    user_script_errors: int


class ScriptRunShown(Shown):
    """What every run of a script or a suite leaves."""

    start_time: int
    """Milliseconds since 1970."""
    end_time: int
    """Milliseconds since 1970."""
    job_log: list[LogLineShown]
    job_assets: list[str]
    """The names of its files."""
    playwright_test_traces: list[str]
    """Paths of the traces, from the service's address."""
    playwright_test_json_report_file: str | None
    """Path of the report. Null: there is none."""


class MultiStepResultShown(ScriptRunShown):
    """What a multi-step check saw."""

    type: Literal["PLAYWRIGHT_TEST", "PLAYWRIGHT"]
    """The second: a script without a test runner, or one that did not begin."""
    runtime_version: str | None
    """Null: it did not begin."""
    playwright_version: str | None
    """Null: no test runner."""
    errors: list[dict[str, Any]]
    """Of the script, its expectations included."""
    requests: list[dict[str, Any]]
    """Calls of Playwright's `request`, with their phases in milliseconds."""
    steps: list[dict[str, Any]]
    steps_left_off: int
    """How many more steps there were."""


class BrowserResultShown(MultiStepResultShown):
    """What a browser check saw."""

    trace_summary: TraceSummaryShown
    pages: list[PageShown]
    playwright_test_videos: list[str]
    """Paths of the videos, from the service's address."""


class PlaywrightResultShown(ScriptRunShown):
    """What a Playwright suite saw."""

    playwright_version: str | None
    """Null: Playwright Test did not start."""
    node_version: str | None
    """Null: it did not begin."""
    counts: dict[str, int] | None
    """How many tests ended how. Null: it did not begin."""
    tests: list[dict[str, Any]]
    errors: list[str]
    """Outside of every test."""
    truncated: bool
    """There were more tests than are kept."""
    playwright_test_videos: list[str]
    """Paths of the videos, from the service's address."""


class AssetShown(Shown):
    """A file that a run left."""

    name: str
    type: Literal["log", "trace", "video", "screenshot", "pcap", "report", "file"]
    content_type: str
    size_bytes: int
    sha256: str
    url: str
    """Where it is read, with the same key."""
    is_kept: bool
    """Whether it arrived here, and is here still."""
