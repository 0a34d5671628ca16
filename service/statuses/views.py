"""Statuses from results; pure."""

import math
from typing import Any

from service.checks.model import CheckName
from service.http.times import spelled
from service.results.model import Extremes, RunStatus, Standing


def status_shown(
    check: CheckName, newest: Standing | None, extremes: Extremes | None
) -> dict[str, Any]:
    """A check's status, as `StatusShown` describes it; None, of either: there is no such result."""
    days = newest.days_to_expiry if newest else None
    return {
        "name": check.name,
        "checkId": check.id,
        "hasFailures": newest is not None and newest.status.has_failures,
        "hasErrors": newest is not None and newest.status.has_errors,
        "isDegraded": newest is not None and newest.status is RunStatus.DEGRADED,
        "longestRun": math.floor(extremes.longest_ms) if extremes else None,
        "shortestRun": math.floor(extremes.shortest_ms) if extremes else None,
        "lastRunLocation": newest.location if newest else None,
        "lastCheckRunId": str(newest.run_id) if newest else None,
        "sslDaysRemaining": None if days is None else math.floor(days),
        "created_at": spelled(check.created_ms),
        "updated_at": spelled(newest.created_ms if newest else None),
    }
