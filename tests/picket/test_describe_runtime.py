"""A report says what a script ran on, and how its traces are opened."""

import sys
from pathlib import Path

import pytest

from contract.evidence import MultiStepEvidence, PlaywrightEvidence
from contract.result import Artifact
from contract.runtimes import RUNTIMES
from picket.report import describe_runtime, trace_command, trace_commands
from tests.builders.observations import an_outcome

TRACE = Artifact(name="trace.zip", kind="trace", size_bytes=1, sha256="0" * 64)
VIDEO = Artifact(name="video.webm", kind="video", size_bytes=1, sha256="0" * 64)


@pytest.mark.parametrize(
    ("called", "program"),
    [
        (".venv/bin/picket", ".venv/bin/picket"),
        ("with blanks/picket", "'with blanks/picket'"),
        ("/lib/picket/__main__.py", f"{sys.executable} -m picket"),
    ],
)
def test_a_trace_is_opened_by_the_program_as_it_was_called(
    called: str, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    kept = trace_commands(an_outcome(artifacts=(VIDEO, TRACE)), Path("my out"))
    assert kept == (f"{program} trace 'my out/trace.zip'",)


def test_a_program_on_the_path_needs_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "picket"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert trace_command(Path("trace.zip")) == "picket trace trace.zip"


def test_a_suite_ran_on_its_own_playwright() -> None:
    seen = PlaywrightEvidence(playwright_version="1.56.1", node_version="24.19.0")
    assert describe_runtime(seen) == {"Playwright": "1.56.1", "Node": "24.19.0"}


def test_a_plain_script_ran_on_its_runtimes_playwright() -> None:
    facts = RUNTIMES["2025.04"]
    said = describe_runtime(MultiStepEvidence(runtime_id="2025.04"))
    assert said == {"runtime": "2025.04", "Playwright": facts.playwright, "Node": facts.node}


def test_what_is_not_scripted_ran_on_nothing_worth_a_word() -> None:
    assert describe_runtime(None) == {}
    assert trace_commands(an_outcome(), Path("out")) == ()
