"""A check's status as people see it."""

from pydantic import Field

from service.http.strict import Shown
from service.http.times import Moment


class StatusShown(Shown):
    """How a check stands by its newest final result."""

    name: str
    """Of the check."""
    check_id: str
    has_failures: bool
    """The target failed the check."""
    has_errors: bool
    """Nobody looked at the target, by no fault of its own."""
    is_degraded: bool
    longest_run: int | None
    """Milliseconds: the longest response time of the last 24 hours. Null: none was measured."""
    shortest_run: int | None
    """The shortest, likewise."""
    last_run_location: str | None
    """Null: the check has no result yet."""
    last_check_run_id: str | None
    """`checkRunId` of the newest result. Null: there is none yet."""
    ssl_days_remaining: int | None
    """Whole days until the certificate runs out that was seen; negative: it has. Null: none was."""
    created_at: Moment = Field(alias="created_at")
    """Of the check."""
    updated_at: Moment | None = Field(alias="updated_at")
    """When the newest result came in. Null: there is none yet."""
