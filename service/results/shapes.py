"""Results as the public API shows them."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import ConfigDict, Field, create_model

from contract.checks import AGENT_TYPES, HTTP_TYPES, CheckType
from contract.job import RunSource
from contract.result import FailureKind
from service.http.schema import ResponseModel
from service.results.model import Cause, RunStatus


class LogLineShown(ResponseModel):
    """One line of a run's log."""

    time: int
    """Milliseconds since 1970."""
    msg: str
    level: Literal["DEBUG", "INFO", "WARN", "ERROR"]


class VitalShown(ResponseModel):
    """A measurement of a page."""

    value: float
    """Milliseconds; for CLS a score."""
    score: Literal["GOOD", "NEEDS_IMPROVEMENT", "POOR"]


class WebVitalsShown(ResponseModel):
    """The measurements of a page. Null: none, or the page was left before."""

    ttfb: VitalShown | None = Field(alias="TTFB")
    fcp: VitalShown | None = Field(alias="FCP")
    lcp: VitalShown | None = Field(alias="LCP")
    cls: VitalShown | None = Field(alias="CLS")
    tbt: VitalShown | None = Field(alias="TBT")


class PageTimingsShown(ResponseModel):
    """Milliseconds from the start of a page's navigation. Null: the page did not get that far."""

    on_content_load: float | None
    on_load: float | None


class PageShown(ResponseModel):
    """One document that the browser showed."""

    page_index: int
    """From 0, in the order of the run."""
    url: str
    web_vitals: WebVitalsShown
    page_timings: PageTimingsShown
    console_errors: int
    network_errors: int
    document_errors: int


class TraceSummaryShown(ResponseModel):
    """How many errors there were, over all pages."""

    console_errors: int
    network_errors: int
    document_errors: int
    user_script_errors: int


class ScriptRunShown(ResponseModel):
    """What every run of a script or a suite produces."""

    start_time: int
    """Milliseconds since 1970."""
    end_time: int
    """Milliseconds since 1970."""
    job_log: list[LogLineShown]
    job_assets: list[str]
    """The names of its files."""
    playwright_test_traces: list[str]
    """Paths of the traces, relative to the service's URL."""
    playwright_test_json_report_file: str | None
    """Path of the report. Null: there is none."""


class MultiStepResultShown(ScriptRunShown):
    """The result of a multi-step check."""

    type: Literal["PLAYWRIGHT_TEST", "PLAYWRIGHT"]
    """The second value: a script without a test runner, or one that did not begin."""
    runtime_version: str | None
    """Null: it did not begin."""
    playwright_version: str | None
    """Null: no test runner."""
    tests: list[dict[str, Any]]
    """The tests of the script with title and status. Empty: a script without a test runner. An
    addition of ours."""
    errors: list[dict[str, Any]]
    """Errors of the script, including failed expectations, each with its test and the lines around
    its position."""
    requests: list[dict[str, Any]]
    """Calls of Playwright's `request`, with their phases in milliseconds."""
    steps: list[dict[str, Any]]
    steps_left_off: int
    """Number of further steps."""


class BrowserResultShown(MultiStepResultShown):
    """The result of a browser check."""

    trace_summary: TraceSummaryShown
    pages: list[PageShown]
    playwright_test_videos: list[str]
    """Paths of the videos, relative to the service's URL."""
    tls: dict[str, Any] | None
    """Version, cipher and certificates of the host that `sslCheckDomain` names. Null: it names
    none, or the host showed none."""


class PlaywrightResultShown(ScriptRunShown):
    """The result of a Playwright suite."""

    playwright_version: str | None
    """Null: Playwright Test did not start."""
    node_version: str | None
    """Null: it did not begin."""
    counts: dict[str, int] | None
    """Number of tests by outcome. Null: it did not begin."""
    tests: list[dict[str, Any]]
    errors: list[str]
    """Errors outside of tests."""
    truncated: bool
    """There were more tests than are stored."""
    playwright_test_videos: list[str]
    """Paths of the videos, relative to the service's URL."""


AssetType = Literal["log", "trace", "video", "screenshot", "pcap", "report", "file"]


class AssetShown(ResponseModel):
    """A file of a run."""

    name: str
    type: AssetType
    content_type: str
    size_bytes: int
    sha256: str
    url: str
    """Where to read it, with the same key."""
    source: Literal["direct"]
    """The address leads to the file itself, not to an archive with it."""
    is_kept: bool
    """Whether it arrived and is still stored."""


class AssetsShown(ResponseModel):
    """The files of a run."""

    assets: list[AssetShown]
    truncated: bool
    """Always false: the list is complete."""
    entries_returned: int
    entries_total: int
    """Without the filters of the request."""


class AssertionShown(ResponseModel):
    """An assertion as it was evaluated."""

    order: int
    source: str
    property: str
    comparison: str
    target: str
    regex: str | None
    actual: str | None
    """The compared value. Null: there was none."""
    error: str | None
    """Why it does not hold. Null: it holds."""


class TimingsShown(ResponseModel):
    """Milliseconds from the start of the request to the end of each phase."""

    socket: float | None
    lookup: float | None
    connect: float | None
    response: float | None
    end: float | None


class TimingPhasesShown(ResponseModel):
    """Milliseconds in each phase. Null: it did not happen."""

    wait: float | None
    dns: float | None
    tcp: float | None
    tls: float | None
    """The TLS handshake; `firstByte` includes it too, because clients sum the phases without it."""
    first_byte: float | None
    download: float | None
    total: float | None


class RequestShown(ResponseModel):
    """The request as it was sent."""

    method: str
    url: str
    data: str
    headers: dict[str, str]
    params: dict[str, str]


class ResponseShown(ResponseModel):
    """The last answer."""

    status: int
    status_text: str
    http_version: str
    headers: dict[str, str]
    body: str
    body_encoding: Literal["utf-8", "base64"]
    body_bytes: int
    truncated: bool
    note: str | None
    """Why the body is not stored. Null: it is stored."""
    href: str
    timings: TimingsShown
    timing_phases: TimingPhasesShown


class NoResponse(ResponseModel):
    """Stands for the answer of a request that got none."""

    model_config = ConfigDict(extra="forbid")


class JobLogShown(ResponseModel):
    """The log by phase."""

    setup: list[LogLineShown]
    request: list[LogLineShown]
    teardown: list[LogLineShown]


class HttpResultShown(ResponseModel):
    """The result of a URL monitor or an API check."""

    assertions: list[AssertionShown]
    request: RequestShown | None
    """Null: nothing was sent."""
    response: ResponseShown | NoResponse
    """An empty object: there was no answer."""
    request_error: str | None
    """Why there was no answer. Null: there was one."""
    hops: list[dict[str, Any]]
    """Every answer of the redirect chain."""
    tls: dict[str, Any] | None
    """Version, cipher and certificates. Null: no TLS."""
    remote_address: str | None
    job_log: JobLogShown
    job_assets: list[str]
    pcap_data_url: str | None


class MonitorResultShown(ResponseModel):
    """The result of a check without scripts and HTTP."""

    assertions: list[AssertionShown]
    timings: dict[str, float]
    """Milliseconds of each phase that happened."""
    evidence: dict[str, Any] | None
    """The evidence. Null: none."""
    request_error: str | None
    """Why there is no evidence. Null: there is."""


class FailureShown(ResponseModel):
    """Why a run did not pass."""

    kind: FailureKind
    message: str
    detail: dict[str, str | int | float | None]


class _CheckResultShown(ResponseModel):
    """One result of one run at one location."""

    id: str
    name: str
    check_id: str
    check_type: CheckType
    check_run_id: int
    """The run; its attempts share it."""
    session_id: str | None
    """Null: the run belonged to no session."""
    run_location: str
    run_source: RunSource
    result_type: Literal["FINAL", "ATTEMPT"]
    attempts: int
    """From 1."""
    status: RunStatus
    cause: Cause | None
    """Why the target was not checked. Null: it was."""
    error: str | None
    """The cause, or why the run failed, as a sentence. Null: neither."""
    failure: FailureShown | None
    """Null: the target did not fail."""
    has_failures: bool
    """The target failed the check."""
    has_errors: bool
    """The target was not checked, for reasons other than the target."""
    is_degraded: bool
    over_max_response_time: bool
    response_time: int | None
    """Milliseconds, rounded down. Null: nothing was measured."""
    scheduled_at: datetime
    started_at: datetime
    stopped_at: datetime
    created_at: datetime = Field(alias="created_at")
    due_times: int
    """How many due times the result stands for: more than 1 if many runs in a row were missed while
    the service was away. The first was at `scheduledAt`, the last at `stoppedAt`."""
    is_cut: bool
    """In lists: texts of more than 1,000 characters and lists of more than 100 items are cut, and
    details that are longer still are left out. Read the result by itself for the whole."""


def result_field(kind: CheckType) -> str:
    """The field of a result that holds what a check of the type saw."""
    return f"{kind.value.lower()}_check_result"


_SEEN_BY_SCRIPTS: Final[Mapping[CheckType, type[ResponseModel]]] = {
    CheckType.BROWSER: BrowserResultShown,
    CheckType.MULTI_STEP: MultiStepResultShown,
    CheckType.PLAYWRIGHT: PlaywrightResultShown,
}


def _seen(kind: CheckType) -> type[ResponseModel]:
    shown = HttpResultShown if kind in HTTP_TYPES else MonitorResultShown
    return _SEEN_BY_SCRIPTS.get(kind, shown)


if TYPE_CHECKING:
    CheckResultShown = _CheckResultShown
else:
    CheckResultShown = create_model(
        "CheckResultShown",
        __base__=_CheckResultShown,
        __doc__=_CheckResultShown.__doc__,
        __module__=__name__,
        **{result_field(kind): (_seen(kind) | None, ...) for kind in AGENT_TYPES},
    )


class ResultsShown(ResponseModel):
    """Results by a cursor."""

    length: int
    """Number of results in `entries`."""
    entries: list[CheckResultShown] | list[dict[str, Any]]
    """Newest first; with `fields`, only those of each."""
    next_id: str | None
    """Send it with the next request. Null: there are no more."""
