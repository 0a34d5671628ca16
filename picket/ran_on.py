"""What a script ran on, and how the traces that it left are opened."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from contract.result import Evidence, Outcome
from contract.runtimes import RUNTIMES
from contract.script_evidence import ScriptEvidence
from contract.suite_evidence import PlaywrightEvidence

_MOST_TRACES: Final = 5
_NAME: Final = "picket"


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
    traces = [one.name for one in outcome.artifacts if one.kind == "trace"]
    return tuple(trace_command(folder / name) for name in traces[:_MOST_TRACES])


def _playwright(evidence: Evidence | None) -> str | None:
    """The version. None: nobody knows it."""
    if isinstance(evidence, PlaywrightEvidence):
        return evidence.playwright_version
    if not isinstance(evidence, ScriptEvidence):
        return None
    facts = RUNTIMES.get(evidence.runtime_id)
    return evidence.playwright or (facts.playwright if facts else None)


def trace_command(path: Path) -> str:
    """What opens a trace, as it can be pasted where it is printed."""
    return f"{_program()} trace {shlex.quote(str(path))}"


def _program() -> str:
    """This program, as the reader called it."""
    called = Path(sys.argv[0])
    if called.name != _NAME:
        return f"{shlex.quote(sys.executable)} -m {_NAME}"
    found = shutil.which(_NAME)
    is_on_path = found is not None and called.exists() and Path(found).samefile(called)
    return _NAME if is_on_path else shlex.quote(sys.argv[0])
