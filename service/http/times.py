"""Times as the API spells them: ISO 8601 in UTC, to the millisecond."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import PlainSerializer


def moment(at_ms: int) -> datetime:
    """Milliseconds since 1970 as a time in UTC."""
    return datetime.fromtimestamp(at_ms // 1000, UTC).replace(microsecond=at_ms % 1000 * 1000)


def maybe_moment(at_ms: int | None) -> datetime | None:
    """The same; None stays None."""
    return None if at_ms is None else moment(at_ms)


def spelled(at_ms: int | None) -> str | None:
    """As in 2026-11-21T08:15:30.250Z; None stays None."""
    if at_ms is None:
        return None
    seconds, rest_ms = divmod(at_ms, 1000)
    # A list of 10,000 has 20,000 times: half of what it takes to spell a datetime with its parts.
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:19]}.{rest_ms:03}Z"


def _spell(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


Moment = Annotated[datetime, PlainSerializer(_spell, return_type=str)]
"""A time in an answer."""
