"""A check result of the public API as the board takes it. Pure."""

from datetime import datetime
from typing import Any

from picket.api_client import KnownCheck
from picket.board import NewResult


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
    )
