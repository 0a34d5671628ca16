"""What a script ran on, and how the traces that it left are opened. Pure.

A viewer reads traces of its own Playwright and of older ones: the command names the run's.
"""

import shlex
from pathlib import Path
from typing import Final

from contract.result import Evidence, Outcome
from contract.runtimes import RUNTIMES
from contract.script_evidence import ScriptEvidence
from contract.suite_evidence import PlaywrightEvidence

_MOST_TRACES: Final = 5


def ran_on(evidence: Evidence | None) -> dict[str, str | None]:
    """Runtime, Playwright and Node by name. Empty: nothing scripted was seen."""
    if isinstance(evidence, PlaywrightEvidence):
        return {"Playwright": evidence.playwright_version, "Node": evidence.node_version}
    if not isinstance(evidence, ScriptEvidence):
        return {}
    facts = RUNTIMES.get(evidence.runtime_id)
    return {
        "runtime": evidence.runtime_id,
        "Playwright": _playwright(evidence),
        "Node": facts.node if facts else None,
    }


def trace_commands(outcome: Outcome, folder: Path) -> tuple[str, ...]:
    """What opens the first traces of the run, which lie in this folder."""
    version = _playwright(outcome.evidence)
    traces = [one.name for one in outcome.artifacts if one.kind == "trace"]
    return tuple(show_command(folder / name, version) for name in traces[:_MOST_TRACES])


def _playwright(evidence: Evidence | None) -> str | None:
    """The version. None: nobody knows it."""
    if isinstance(evidence, PlaywrightEvidence):
        return evidence.playwright_version
    if not isinstance(evidence, ScriptEvidence):
        return None
    facts = RUNTIMES.get(evidence.runtime_id)
    return evidence.playwright or (facts.playwright if facts else None)


def show_command(path: Path, version: str | None) -> str:
    """What opens a trace of this version. None: nobody knows it."""
    tool = f"playwright@{version}" if version else "playwright"
    return f"npx {tool} show-trace {shlex.quote(str(path))}"
