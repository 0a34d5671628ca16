"""What a Playwright check suite saw: its tests, one by one."""

from typing import Literal

from contract.wire import Milliseconds, Wire

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
