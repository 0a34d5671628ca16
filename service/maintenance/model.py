"""Maintenance windows as they are stored, sent and seen."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from service.checks.fields import Listing, Name, TagText
from service.http.schema import (
    JsonNumber,
    RequestModel,
    ResponseModel,
    Text,
    blank_is_none,
    zero_is_none,
)
from service.http.times import Moment, moment, optional_moment
from service.maintenance.recurrence import MOST_COUNT, MOST_LETTERS

MOST_REPEATING_DAYS: Final = 31
"""How long a window lasts at most that repeats."""
FOREVER_MS: Final = 253_402_300_799_999
"""The end of the year 9999."""
_MOST_INTERVAL: Final = 1_000


RepeatUnit = Literal["DAY", "WEEK", "MONTH"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When a window is open."""

    starts_ms: int
    """When it opens for the first time."""
    ends_ms: int
    """When it closes for the first time, exclusive; each later one lasts as long."""
    rule: str | None
    """A rule of RFC 5545. None: it does not repeat."""
    time_zone: str
    """The IANA zone whose clock it repeats by."""
    over_ms: int
    """When it has closed for the last time; `FOREVER_MS` if it goes on for ever."""

    @property
    def lasts_ms(self) -> int:
        """How long it is open each time."""
        return self.ends_ms - self.starts_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRow:
    """A maintenance window as it is stored."""

    id: int
    name: str
    tags: tuple[str, ...]
    """It applies to checks with one of them; to all if there are none."""
    is_announced: bool
    """Whether status pages announce it."""
    timing: Timing
    repeat_interval: int | None
    """What was sent, to show; `timing` tells when it is open."""
    repeat_unit: RepeatUnit | None
    """What was sent, to show."""
    repeat_ends_ms: int | None
    """What was sent, to show: no occurrence begins later."""
    rrule: str | None
    """What was sent, to show."""
    created_ms: int
    updated_ms: int | None
    """None: never changed."""

    def applies_to(self, tags: Collection[str]) -> bool:
        """Whether it applies to a check with these tags."""
        return not self.tags or not frozenset(self.tags).isdisjoint(tags)


@dataclass(frozen=True, slots=True)
class WindowFilter:
    """Which windows a list is asked for, by their first occurrence."""

    starts_from_ms: int | None
    """It begins then or later. None: any."""
    ends_by_ms: int | None
    """It ends then or before. None: any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One time at which a window is open."""

    window_id: int
    name: str
    """The window's."""
    begins_ms: int
    ends_ms: int
    """Exclusive."""


TimeText = Annotated[Text, Field(max_length=40, json_schema_extra={"format": "date-time"})]


class WindowWrite(RequestModel):
    """A maintenance window in a request.

    Times are ISO 8601. Those without an offset are in `timeZone`; a date without a time is its
    midnight, and as `repeatEndsAt` the whole day.
    """

    name: Name
    """Its name, in lists and on pages."""
    tags: Listing[TagText] = Field(default_factory=list)
    """It applies to checks with any of these tags, or whose group has one. Empty: to all checks."""
    show_on_status_pages: bool = False
    """Whether visitors of status pages read its name and its times, from a week before. A page
    shows it if one of the checks that it applies to opens incidents of a service of the page."""
    starts_at: TimeText
    """When it begins for the first time."""
    ends_at: TimeText
    """When it ends for the first time; each later occurrence lasts exactly as long."""
    repeat_interval: Annotated[
        Annotated[int, Field(ge=1, le=_MOST_INTERVAL)] | None,
        BeforeValidator(zero_is_none),
        JsonNumber,
    ] = None
    """Every how many `repeatUnit`s it repeats. Null: it does not, unless it has an `rrule`."""
    repeat_unit: Annotated[RepeatUnit | None, BeforeValidator(blank_is_none)] = None
    """By MONTH, a window of the 31st is on the last day of shorter months."""
    repeat_ends_at: Annotated[TimeText | None, BeforeValidator(blank_is_none)] = None
    """No occurrence begins after this. Null: it repeats for ever."""
    rrule: Annotated[
        Annotated[Text, Field(max_length=MOST_LETTERS)] | None, BeforeValidator(blank_is_none)
    ] = Field(
        default=None,
        description=(
            "Instead of `repeatInterval`: a rule of RFC 5545 such as `FREQ=MONTHLY;BYDAY=1SU`, by"
            " DAILY, WEEKLY, MONTHLY or YEARLY. `startsAt` is its first occurrence. It skips dates"
            f" that a month has not; COUNT is {MOST_COUNT} at most."
        ),
    )
    time_zone: Annotated[Text, Field(min_length=1, max_length=64)] = "UTC"
    """The IANA time zone by whose clock it repeats, such as Europe/Berlin."""


class WindowShown(ResponseModel):
    """A maintenance window."""

    id: int
    name: str
    tags: tuple[str, ...]
    """It applies to checks with any of them; to all if empty."""
    show_on_status_pages: bool
    """Whether visitors of status pages read its name and its times."""
    starts_at: Moment
    ends_at: Moment
    repeat_interval: int | None
    """Null: it does not repeat, unless it has an `rrule`."""
    repeat_unit: RepeatUnit | None
    repeat_ends_at: Moment | None
    """Null: it repeats for ever."""
    rrule: str | None
    """A rule of RFC 5545. Null: it repeats by `repeatInterval`, or not at all."""
    time_zone: str
    created_at: Moment = Field(alias="created_at")
    updated_at: Moment | None = Field(alias="updated_at")
    """Null: never changed."""


def render(row: WindowRow) -> WindowShown:
    """A stored window as its answer."""
    return WindowShown(
        id=row.id,
        name=row.name,
        tags=row.tags,
        show_on_status_pages=row.is_announced,
        starts_at=moment(row.timing.starts_ms),
        ends_at=moment(row.timing.ends_ms),
        repeat_interval=row.repeat_interval,
        repeat_unit=row.repeat_unit,
        repeat_ends_at=optional_moment(row.repeat_ends_ms),
        rrule=row.rrule,
        time_zone=row.timing.time_zone,
        created_at=moment(row.created_ms),
        updated_at=optional_moment(row.updated_ms),
    )
