"""What a scripted check saw: pages with their measures, requests, steps and errors."""

from contract.wire import Milliseconds, Wire


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
