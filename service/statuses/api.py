"""`/v1/check-statuses`: how checks stand by their newest results."""

import math
from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import Path
from pydantic import Field
from sqlalchemy import Connection
from starlette.responses import Response

from service.checks import actions as checks
from service.checks.model import CheckName
from service.http.auth import CallerDep
from service.http.dependencies import Backend, BackendDep
from service.http.errors import NotFoundError
from service.http.routing import answers, json, json_fast, keyed_operations
from service.http.schema import NO_NUL, ResponseModel
from service.http.times import Moment, format_time
from service.results import actions as results
from service.results.model import Extremes, RunStatus, Standing


class StatusShown(ResponseModel):
    """The status of a check by its newest final result."""

    name: str
    """The name of the check."""
    check_id: str
    has_failures: bool
    """The target failed the check."""
    has_errors: bool
    """The target was not checked, for reasons other than the target."""
    is_degraded: bool
    longest_run: int | None
    """Milliseconds: the longest response time of the last 24 hours. Null: none was measured."""
    shortest_run: int | None
    """Milliseconds: the shortest response time, likewise."""
    last_run_location: str
    last_check_run_id: str
    """`checkRunId` of the newest result."""
    ssl_days_remaining: int | None
    """Whole days until the first certificate of the chain expires; negative: it has. Null: none was
    seen."""
    created_at: Moment = Field(alias="created_at")
    """When the check was created."""
    updated_at: Moment = Field(alias="updated_at")
    """When the newest result arrived."""


router = keyed_operations("Check statuses", prefix="/v1/check-statuses")

CheckId = Annotated[str, Path(alias="checkId", pattern=NO_NUL, max_length=200)]
_ONE: Final = "/{checkId}"
DAY_MS: Final = 86_400_000


@router.get("", responses=answers(200, list[StatusShown], "All statuses, the oldest check first."))
async def list_check_statuses(caller: CallerDep, backend: BackendDep) -> Response:
    """List the statuses of the account's checks that have a result, in one answer."""

    def query(connection: Connection) -> Response:
        # The answer is written here, in the reader's thread: of 10,000 checks it has 3.5 MB.
        return json_fast(
            _render_statuses(connection, backend, checks.list_names(connection, caller.account_id))
        )

    return await backend.database.read(query)


@router.get(_ONE, responses=answers(200, StatusShown, "The status.", 404))
async def read_check_status(check_id: CheckId, caller: CallerDep, backend: BackendDep) -> Response:
    """Read the status of a check that has a result; 404 for one that has none yet."""

    def query(connection: Connection) -> dict[str, Any]:
        named = checks.find_name(connection, caller.account_id, check_id)
        statuses = _render_statuses(connection, backend, [named])
        if not statuses:
            raise NotFoundError(f"The check {check_id} has no result yet.")
        return statuses[0]

    return json(await backend.database.read(query))


def _render_statuses(
    connection: Connection, backend: Backend, named: Sequence[CheckName]
) -> list[dict[str, Any]]:
    """Checks without a result are left out: to clients, no fault means that a check passes."""
    newest = results.standings(connection, [one.id for one in named])
    ran = [one for one in named if one.id in newest]
    from_ms = backend.clock.now_ms(connection) - DAY_MS
    extremes = results.extremes(connection, [one.id for one in ran], from_ms=from_ms)
    return [render_status(one, newest[one.id], extremes.get(one.id)) for one in ran]


def render_status(check: CheckName, newest: Standing, extremes: Extremes | None) -> dict[str, Any]:
    """A check's status, as `StatusShown` describes it.

    `extremes`: None if no response time was measured.
    """
    days = newest.days_to_expiry
    return {
        "name": check.name,
        "checkId": check.id,
        "hasFailures": newest.status.has_failures,
        "hasErrors": newest.status.has_errors,
        "isDegraded": newest.status is RunStatus.DEGRADED,
        "longestRun": math.floor(extremes.longest_ms) if extremes else None,
        "shortestRun": math.floor(extremes.shortest_ms) if extremes else None,
        "lastRunLocation": newest.location,
        "lastCheckRunId": str(newest.run_id),
        "sslDaysRemaining": None if days is None else math.floor(days),
        "created_at": format_time(check.created_ms),
        "updated_at": format_time(newest.created_ms),
    }
