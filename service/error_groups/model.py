"""Error groups as they are stored and shown."""

from dataclasses import dataclass
from typing import Final

from service.http.schema import RequestModel, ResponseModel
from service.http.times import Moment, moment

MOST_OF_CHECK: Final = 500
"""A check has at most so many groups; the one that was seen longest ago goes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """A failure of a check."""

    check_id: str
    error_hash: str
    raw: str
    """The message as the result has it."""
    cleaned: str
    seen_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorGroup:
    """Failures of a check whose messages are alike."""

    id: str
    check_id: str
    error_hash: str
    raw: str
    """The message of the newest one."""
    cleaned: str
    first_seen_ms: int
    last_seen_ms: int
    archived_until_next: bool
    """Not listed until it occurs again."""
    archived_forever: bool
    """Not listed, whatever occurs."""


class ErrorGroupShown(ResponseModel):
    """Failures of a check whose messages are alike."""

    id: str
    check_id: str
    error_hash: str
    """The hash of `cleanedErrorMessage`."""
    raw_error_message: str | None
    """The message of the newest failure, as its result has it; at most 10,000 characters."""
    cleaned_error_message: str
    """The message with placeholders for what differs from run to run."""
    first_seen: Moment
    last_seen: Moment
    archived_until_next_event: bool
    """Lists leave it out until it occurs again."""
    archive_for_ever: bool
    """Lists leave it out, whatever occurs."""
    root_cause_analyses: list[dict[str, object]]
    """Always empty: this service makes none."""


class ErrorGroupChange(RequestModel):
    """Whether lists show a group; what is left out stays as it is."""

    archive_for_ever: bool | None = None
    """True: lists leave it out, whatever occurs."""
    archived_until_next_event: bool | None = None
    """True: lists leave it out until it occurs again."""


def render(group: ErrorGroup) -> ErrorGroupShown:
    """A group as its answer."""
    return ErrorGroupShown(
        id=group.id,
        check_id=group.check_id,
        error_hash=group.error_hash,
        raw_error_message=group.raw,
        cleaned_error_message=group.cleaned,
        first_seen=moment(group.first_seen_ms),
        last_seen=moment(group.last_seen_ms),
        archived_until_next_event=group.archived_until_next,
        archive_for_ever=group.archived_forever,
        root_cause_analyses=[],
    )
