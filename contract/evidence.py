"""What a result records of an HTTP exchange, a script's run or a suite's run."""

from datetime import datetime
from typing import Literal

from contract.wire import Milliseconds, Wire


class Certificate(Wire, frozen=True, kw_only=True):
    """A certificate of a chain."""

    subject: str
    issuer: str
    serial: str
    """The serial number in hexadecimal."""
    not_before: datetime
    not_after: datetime
    names: tuple[str, ...] = ()
    """DNS names and IP addresses that the certificate is valid for."""
    fingerprint_sha256: str


class TlsFacts(Wire, frozen=True, kw_only=True):
    """The facts of a TLS connection."""

    version: str | None = None
    """The protocol version, such as TLSv1.3. None: the handshake failed before it was agreed."""
    cipher: str | None = None
    """The cipher suite. None: the handshake failed before it was agreed."""
    verified: bool
    verify_error: str | None = None
    """Why the certificate is not trusted; set with skipSSL too. None: it is trusted, or there was
    none."""
    days_to_expiry: float | None = None
    """Days until the first certificate of the chain expires; negative once it has. A root that the
    server sends does not count. None: there was no certificate."""
    expires_first: str | None = None
    """The subject of the certificate that `days_to_expiry` is about. None: there was none."""
    chain: tuple[Certificate, ...] = ()
    """The certificates that the server sent, leaf first."""


class Hop(Wire, frozen=True, kw_only=True):
    """A response in a chain of redirects, the final one included."""

    url: str
    status_code: int
    location: str | None = None
    """The Location header. None: it had none."""
    remote_address: str | None = None
    """The address of the server. None: a proxy hid it."""
    total_ms: Milliseconds | None = None


class SentRequest(Wire, frozen=True, kw_only=True):
    """The first request as it was sent, with variables filled in."""

    method: str
    url: str
    headers: dict[str, str] = {}
    body: str = ""


class SeenResponse(Wire, frozen=True, kw_only=True):
    """The final response; a long body is cut."""

    status_code: int
    status_text: str = ""
    http_version: str = ""
    """The HTTP version, such as 1.1, 2 or 3."""
    headers: dict[str, str] = {}
    """Headers by lower-case name, without trailers. Repeated headers are joined by ", "; of
    Content-Type and Location only the first is kept."""
    body: str = ""
    body_encoding: Literal["utf-8", "base64"] = "utf-8"
    body_bytes: int = 0
    """The size of the decoded body, as far as it was read."""
    truncated: bool = False
    """Whether the stored body is incomplete: it was cut, or reading stopped at the limit."""
    note: str | None = None
    """Why the body is not stored. None: it is stored."""


class HttpEvidence(Wire, frozen=True, kw_only=True, tag_field="kind", tag="http"):
    """Evidence of a URL or API check."""

    request: SentRequest
    response: SeenResponse | None = None
    """The final response. None: there was none."""
    hops: tuple[Hop, ...] = ()
    tls: TlsFacts | None = None
    """Facts of the TLS connection. None: TLS was not used."""
    remote_address: str | None = None
    """The address of the server. None: no connection was made, or a proxy hid it."""


class PageMetrics(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Metrics of a page load. None: the page did not report it, or was left before it could."""

    ttfb_ms: Milliseconds | None = None
    """Time to the first byte of the document."""
    fcp_ms: Milliseconds | None = None
    """Time to the first contentful paint."""
    lcp_ms: Milliseconds | None = None
    """Time to the largest contentful paint."""
    cls: float | None = None
    """Cumulative layout shift, a score without a unit."""
    tbt_ms: Milliseconds | None = None
    """Total blocking time: how long tasks after the first paint exceeded 50 ms, summed up."""
    content_loaded_ms: Milliseconds | None = None
    load_ms: Milliseconds | None = None


class PageSeen(Wire, frozen=True, kw_only=True):
    """A document that a page's main frame showed."""

    index: int
    """The document's position in the run, from 0, counted over all pages and pop-ups."""
    url: str
    metrics: PageMetrics = PageMetrics()
    console_errors: int = 0
    """Errors in the browser's console, including its own about failed loads."""
    network_errors: int = 0
    """Requests that failed or got a status of 400 or above."""
    document_errors: int = 0
    """Uncaught exceptions and unhandled rejections of the page's own scripts."""


class RequestTimings(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Phases of a call's last exchange, in ms. None: the phase did not happen."""

    dns: Milliseconds | None = None
    tcp: Milliseconds | None = None
    tls: Milliseconds | None = None
    first_byte: Milliseconds | None = None
    download: Milliseconds | None = None
    total: Milliseconds | None = None
    """Duration of the whole call, redirects included."""


class RequestNode(Wire, frozen=True, kw_only=True):
    """A call of Playwright's `request`."""

    method: str
    url: str
    """The requested URL; after redirects, the URL of the final response."""
    started_after_ms: Milliseconds
    """Time from the start of the run."""
    status_code: int | None = None
    """The status of the response. None: there was no response."""
    status_text: str = ""
    remote_address: str | None = None
    """The address of the server. None: no connection was made."""
    body_bytes: int | None = None
    """The size of the body. None: there was no response."""
    timings: RequestTimings = RequestTimings()
    error: str | None = None
    """Why there was no response. None: there was one."""


class StepSeen(Wire, frozen=True, kw_only=True):
    """A step of a script: an action of Playwright, an expectation, or a `test.step`."""

    title: str
    category: str
    """Playwright's category: `pw:api`, `expect`, `test.step`, `hook` or `fixture`."""
    where: str | None = None
    """File, line and column, such as script.js:5:14. None: not in the user's own files."""
    started_after_ms: Milliseconds
    """Time from the start of the run."""
    took_ms: Milliseconds | None = None
    """Duration of the step. None: it was still running when the run ended."""
    error: str | None = None
    """Why the step failed. None: it did not."""


class ScriptError(Wire, frozen=True, kw_only=True):
    """An error of a script, failed expectations included."""

    message: str
    where: str | None = None
    """File, line and column, such as script.js:5:14. None: not in the user's own files."""
    is_soft: bool = False
    """Whether it comes from `expect.soft`, after which the script went on."""
    test: str | None = None
    """The title of its test, after those of the `describe` blocks around it. None: it belongs to no
    test."""
    frame: str | None = None
    """The lines of the script around the place, as Playwright shows them. None: it shows none."""


TestStatus = Literal["passed", "failed", "timedOut", "skipped", "interrupted"]
TestOutcome = Literal["expected", "unexpected", "flaky", "skipped"]


class ScriptTest(Wire, frozen=True, kw_only=True):
    """A test of a script, after its last attempt."""

    title: str
    """The test's title, after those of the `describe` blocks around it."""
    status: TestStatus
    """The status of the last attempt."""
    outcome: TestOutcome
    """Playwright's verdict; a test that is declared to fail and does fail is `expected`."""
    took_ms: Milliseconds
    """Duration of the last attempt."""


class ScriptEvidence(Wire, frozen=True, kw_only=True):
    """The evidence that all scripted checks share."""

    runtime_id: str
    playwright: str | None = None
    """The version of Playwright Test. None: a plain script ran, without a test runner."""
    requests: tuple[RequestNode, ...] = ()
    steps: tuple[StepSeen, ...] = ()
    """The first steps of the run; `steps_left_off` says how many more there were."""
    steps_left_off: int = 0
    tests: tuple[ScriptTest, ...] = ()
    """The tests that have ended, in their order, up to 300. Empty: a plain script ran."""
    errors: tuple[ScriptError, ...] = ()
    """The first 20 errors; `user_script_errors` says how many there were."""
    user_script_errors: int = 0


class SnapshotSeen(Wire, frozen=True, kw_only=True):
    """A snapshot that a run wrote anew."""

    path: str
    """Relative to the same folder as the script's path."""
    artifact: str
    """The name of the artifact with its bytes."""


class BrowserEvidence(ScriptEvidence, frozen=True, kw_only=True, tag_field="kind", tag="browser"):
    """Evidence of a BROWSER check."""

    pages: tuple[PageSeen, ...] = ()
    ssl_check_domain: str | None = None
    """The host whose certificate is watched. None: the check names none."""
    tls: TlsFacts | None = None
    """What that host showed. None: there is no such host, or it showed nothing."""
    snapshots: tuple[SnapshotSeen, ...] = ()
    """Those that were new or differed, where the job asks for such. Empty otherwise."""


class MultiStepEvidence(
    ScriptEvidence, frozen=True, kw_only=True, tag_field="kind", tag="multiStep"
):
    """Evidence of a MULTI_STEP check."""


class SuiteTest(Wire, frozen=True, kw_only=True):
    """A test in a project, after its last attempt."""

    project: str = ""
    """The name of the project. Empty: the suite has no projects."""
    title: str
    """The test's title, after those of the `describe` blocks around it."""
    file: str
    """The test's file, relative to the suite's working directory."""
    line: int
    status: TestStatus
    """The status of the last attempt."""
    outcome: TestOutcome
    """Playwright's verdict; a test that is declared to fail and does fail is `expected`."""
    took_ms: Milliseconds
    """Duration of all attempts together."""
    retries: int = 0
    """How often the test was retried."""
    errors: tuple[str, ...] = ()
    """Errors of the last attempt that had any, one per location in the code."""


class TestCounts(Wire, frozen=True, kw_only=True):
    """Tests counted by their outcome."""

    planned: int = 0
    """Tests that the suite planned to run, counted once per project."""
    passed: int = 0
    """Tests that ended as expected at the first attempt."""
    failed: int = 0
    flaky: int = 0
    """Tests that ended as expected only after a retry."""
    skipped: int = 0
    did_not_run: int = 0
    """Tests that had not begun when the run ended."""


class PlaywrightEvidence(Wire, frozen=True, kw_only=True, tag_field="kind", tag="playwright"):
    """Evidence of a PLAYWRIGHT check."""

    playwright_version: str | None = None
    """The version of Playwright Test. None: it did not start."""
    node_version: str
    counts: TestCounts = TestCounts()
    tests: tuple[SuiteTest, ...] = ()
    """The tests in the order in which they ended."""
    errors: tuple[str, ...] = ()
    """Errors outside of all tests, such as a file that does not load or a web server that does not
    start."""
    truncated: bool = False
    """Whether there were more tests, or more details of them, than are kept."""
