"""A report says what a script ran on, and how its traces are opened."""

from pathlib import Path

from contract.result import Artifact
from contract.runtimes import RUNTIMES
from contract.script_evidence import BrowserEvidence, MultiStepEvidence
from contract.suite_evidence import PlaywrightEvidence
from picket.ran_on import ran_on, trace_commands
from tests.builders.observations import an_outcome

TRACE = Artifact(name="trace.zip", kind="trace", size_bytes=1, sha256="0" * 64)
VIDEO = Artifact(name="video.webm", kind="video", size_bytes=1, sha256="0" * 64)


def test_a_trace_is_opened_by_the_playwright_that_wrote_it() -> None:
    seen = BrowserEvidence(runtime_id="2026.04", playwright="1.65.1")
    kept = trace_commands(an_outcome(artifacts=(VIDEO, TRACE), evidence=seen), Path("my out"))
    assert kept == ("npx playwright@1.65.1 show-trace 'my out/trace.zip'",)


def test_a_suite_is_opened_by_its_own_playwright() -> None:
    seen = PlaywrightEvidence(playwright_version="1.56.1", node_version="24.19.0")
    kept = trace_commands(an_outcome(artifacts=(TRACE,), evidence=seen), Path("out"))
    assert kept == ("npx playwright@1.56.1 show-trace out/trace.zip",)
    assert ran_on(seen) == {"Playwright": "1.56.1", "Node": "24.19.0"}


def test_a_plain_script_ran_on_its_runtimes_playwright() -> None:
    facts = RUNTIMES["2025.04"]
    said = ran_on(MultiStepEvidence(runtime_id="2025.04"))
    assert said == {"runtime": "2025.04", "Playwright": facts.playwright, "Node": facts.node}


def test_what_is_not_scripted_ran_on_nothing_worth_a_word() -> None:
    assert ran_on(None) == {}
    assert trace_commands(an_outcome(), Path("out")) == ()
