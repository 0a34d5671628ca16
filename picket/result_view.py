"""A check result of the public API as the board takes it. Pure."""

from datetime import datetime
from typing import Any, Final

from picket.api_client import KnownCheck
from picket.board import NewResult

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
        trace=next(iter(trace_paths(fields)), None),
    )


def trace_paths(fields: dict[str, Any]) -> list[str]:
    """Where the API has the traces of a result. Empty: it kept none."""
    seen = next(filter(None, (fields.get(name) for name in _WITH_TRACES)), None)
    return [] if seen is None else [str(path) for path in seen["playwrightTestTraces"] or ()]
