"""What a result shows of an exchange, a script's run or a suite's run."""

from datetime import datetime
from typing import Literal

from contract.wire import Milliseconds, Wire


class Certificate(Wire, frozen=True, kw_only=True):
    """One certificate of a chain."""

    subject: str
    issuer: str
    serial: str
    """Hexadecimal."""
    not_before: datetime
    not_after: datetime
    names: tuple[str, ...] = ()
    """DNS names and addresses that it speaks for."""
    fingerprint_sha256: str


class TlsFacts(Wire, frozen=True, kw_only=True):
    """What was seen of TLS."""

    version: str | None = None
    """As in TLSv1.3. None: the handshake did not get so far."""
    cipher: str | None = None
    """None: the handshake did not get so far."""
    verified: bool
    verify_error: str | None = None
    """Why the certificate is not trusted, with skipSSL too. None: it is, or none was seen."""
    days_to_expiry: float | None = None
    """Of the leaf certificate; negative when it has run out. None: no certificate was seen."""
    chain: tuple[Certificate, ...] = ()
    """Leaf first."""


class Hop(Wire, frozen=True, kw_only=True):
    """One answer on the way through redirects, the last one included."""

    url: str
    status_code: int
    location: str | None = None
    """Where it pointed. None: it did not."""
    remote_address: str | None = None
    """None: a proxy hid it."""
    total_ms: Milliseconds | None = None


class SentRequest(Wire, frozen=True, kw_only=True):
    """The first request as it was sent, after variables were filled in."""

    method: str
    url: str
    headers: dict[str, str] = {}
    body: str = ""


class SeenResponse(Wire, frozen=True, kw_only=True):
    """The last answer, body cut to what is stored."""

    status_code: int
    status_text: str = ""
    http_version: str = ""
    """As in 1.1, 2 or 3."""
    headers: dict[str, str] = {}
    """Lower case; repeats joined by ", ", of Content-Type and Location the first; no trailers."""
    body: str = ""
    body_encoding: Literal["utf-8", "base64"] = "utf-8"
    body_bytes: int = 0
    """Size as read, decoded."""
    truncated: bool = False
    """The stored body is a beginning of the one that was read, or reading stopped at the limit."""
    note: str | None = None
    """Why the body is not stored. None: it is."""


class HttpEvidence(Wire, frozen=True, kw_only=True, tag_field="kind", tag="http"):
    """What a URL or API check saw."""

    request: SentRequest
    response: SeenResponse | None = None
    """None: there was no answer."""
    hops: tuple[Hop, ...] = ()
    tls: TlsFacts | None = None
    """None: no TLS."""
    remote_address: str | None = None
    """None: no connection, or a proxy hid it."""


class PageMetrics(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Measures of one page load. None: the page did not tell, or was left before."""

    ttfb_ms: Milliseconds | None = None
    """To the first byte of the document."""
    fcp_ms: Milliseconds | None = None
    """To the first contentful paint."""
    lcp_ms: Milliseconds | None = None
    """To the largest contentful paint."""
    cls: float | None = None
    """Cumulative layout shift: a score, no time."""
    tbt_ms: Milliseconds | None = None
    """Total blocking time: what of each long task after the first paint went beyond 50 ms."""
    content_loaded_ms: Milliseconds | None = None
    load_ms: Milliseconds | None = None


class PageSeen(Wire, frozen=True, kw_only=True):
    """One document that a main frame showed."""

    index: int
    """From 0, in the order of the run, over all pages and pop-ups."""
    url: str
    metrics: PageMetrics = PageMetrics()
    console_errors: int = 0
    """As the browser's console shows them, its own about failed loads included."""
    network_errors: int = 0
    """Requests that failed or were answered by a status of 400 or above."""
    document_errors: int = 0
    """Exceptions and rejections that the page's own scripts did not catch."""


class RequestTimings(Wire, frozen=True, kw_only=True, omit_defaults=True):
    """Phases of the last exchange of a call, in ms. None: the phase did not happen."""

    dns: Milliseconds | None = None
    tcp: Milliseconds | None = None
    tls: Milliseconds | None = None
    first_byte: Milliseconds | None = None
    download: Milliseconds | None = None
    total: Milliseconds | None = None
    """Of the whole call, redirects included."""


class RequestNode(Wire, frozen=True, kw_only=True):
    """One call of Playwright's `request`."""

    method: str
    url: str
    """Of the last answer when there were redirects."""
    started_after_ms: Milliseconds
    """Since the run started."""
    status_code: int | None = None
    """None: there was no answer."""
    status_text: str = ""
    remote_address: str | None = None
    """None: no connection."""
    body_bytes: int | None = None
    """None: there was no answer."""
    timings: RequestTimings = RequestTimings()
    error: str | None = None
    """Why there was no answer. None: there was one."""


class StepSeen(Wire, frozen=True, kw_only=True):
    """One step of a script: an action of Playwright's, an expectation, a step of the user's."""

    title: str
    category: str
    """As Playwright names it: `pw:api`, `expect`, `test.step`, `hook`, `fixture`."""
    where: str | None = None
    """As in script.js:5:14. None: not in the user's own files."""
    started_after_ms: Milliseconds
    """Since the run started."""
    took_ms: Milliseconds | None = None
    """None: it had not ended when the run did."""
    error: str | None = None
    """None: it did not fail."""


class ScriptError(Wire, frozen=True, kw_only=True):
    """An error of the script, its expectations included."""

    message: str
    where: str | None = None
    """As in script.js:5:14. None: not in the user's own files."""
    is_soft: bool = False
    """From `expect.soft`: the script went on."""


class ScriptEvidence(Wire, frozen=True, kw_only=True):
    """What every scripted check has seen."""

    runtime_id: str
    playwright: str | None = None
    """Version of Playwright Test. None: a plain script ran, without a test runner."""
    requests: tuple[RequestNode, ...] = ()
    steps: tuple[StepSeen, ...] = ()
    """The first of them; `steps_left_off` says how many more there were."""
    steps_left_off: int = 0
    errors: tuple[ScriptError, ...] = ()
    user_script_errors: int = 0


class BrowserEvidence(ScriptEvidence, frozen=True, kw_only=True, tag_field="kind", tag="browser"):
    """What a BROWSER check saw."""

    pages: tuple[PageSeen, ...] = ()


class MultiStepEvidence(
    ScriptEvidence, frozen=True, kw_only=True, tag_field="kind", tag="multiStep"
):
    """What a MULTI_STEP check saw."""


TestStatus = Literal["passed", "failed", "timedOut", "skipped", "interrupted"]
TestOutcome = Literal["expected", "unexpected", "flaky", "skipped"]


class SuiteTest(Wire, frozen=True, kw_only=True):
    """One test in one project, after its last try."""

    project: str = ""
    """Empty: the suite has no projects."""
    title: str
    """With the titles of the blocks that it stands in."""
    file: str
    """Relative to the suite's working directory."""
    line: int
    status: TestStatus
    """Of the last try."""
    outcome: TestOutcome
    """What that means: a test that is declared to fail and does so is expected."""
    took_ms: Milliseconds
    """Of all tries together."""
    retries: int = 0
    """How often it was tried again."""
    errors: tuple[str, ...] = ()
    """Of the last try that had any, one per place."""


class TestCounts(Wire, frozen=True, kw_only=True):
    """How many tests ended how."""

    planned: int = 0
    """What the suite was going to run, once per project."""
    passed: int = 0
    """As expected, at the first try."""
    failed: int = 0
    flaky: int = 0
    """As expected, but only after a retry."""
    skipped: int = 0
    did_not_run: int = 0
    """The run ended before their turn."""


class PlaywrightEvidence(Wire, frozen=True, kw_only=True, tag_field="kind", tag="playwright"):
    """What a Playwright check suite saw."""

    playwright_version: str | None = None
    """None: Playwright Test did not start."""
    node_version: str
    counts: TestCounts = TestCounts()
    tests: tuple[SuiteTest, ...] = ()
    """In the order in which they ended."""
    errors: tuple[str, ...] = ()
    """Outside of every test: a file that does not load, a server that does not start."""
    truncated: bool = False
    """There were more tests or more facts of them than are kept."""
