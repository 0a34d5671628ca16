"""A check result of the public API as the board takes it. Pure."""

from datetime import datetime
from typing import Any, Final

from contract.runtimes import RUNTIMES
from picket.api_client import KnownCheck
from picket.board import NewResult, Trace

_WITH_TRACES: Final = ("browserCheckResult", "multiStepCheckResult", "playwrightCheckResult")


def read_result(fields: dict[str, Any], check: KnownCheck) -> NewResult:
    """The result, with the sentence that says why it did not pass, or is degraded."""
    return NewResult(
        id=str(fields["id"]),
        check_id=check.id,
        check_name=check.name,
        kind=check.kind,
        status=str(fields["status"]),
        response_time_ms=fields["responseTime"],
        cause=fields["error"] or fields["degradedBecause"] or "",
        at=datetime.fromisoformat(fields["stoppedAt"]),
        trace=_trace(fields),
    )


def _trace(fields: dict[str, Any]) -> Trace | None:
    seen = next(filter(None, (fields.get(name) for name in _WITH_TRACES)), None)
    if seen is None or not seen["playwrightTestTraces"]:
        return None
    facts = RUNTIMES.get(str(seen.get("runtimeVersion")))
    version = seen["playwrightVersion"] or (facts.playwright if facts else None)
    return Trace(str(seen["playwrightTestTraces"][0]), version)
