"""When maintenance windows are open: pure functions of a window and a time.

An occurrence lasts exactly as long as the first one, also across a change of the clocks (RFC 5545
for events with an end). It begins when the clock on the wall of the window's zone shows the time
of the first one: what a clock that is set forward leaves out is as much later, and of what it
shows twice the first counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from contract.targets import format_value
from service.http.errors import InvalidError
from service.maintenance import recurrence
from service.maintenance.model import (
    FOREVER_MS,
    MOST_REPEATING_DAYS,
    Occurrence,
    Timing,
    WindowRow,
    WindowWrite,
)
from service.maintenance.recurrence import RecurrenceError

MOST_OCCURRENCES: Final = 1_000
"""One window has no more between two times."""
MOST_DAYS: Final = 400
"""How far apart two times may be between which occurrences are looked for."""
_NEXT_YEARS: Final = 10
"""How far ahead the next occurrence is looked for."""
_DAY_MS: Final = 86_400_000
_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 2999


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a request says of a window's times."""

    timing: Timing
    repeat_ends_ms: int | None
    """None: it repeats for ever, or as long as its rule says."""


def plan(body: WindowWrite) -> Plan:
    """The times of a window that a request describes.

    Raises:
        InvalidError: they do not fit.
    """
    zone = _zone(body.time_zone)
    starts_ms = _read_time("startsAt", body.starts_at, zone)
    ends_ms = _read_time("endsAt", body.ends_at, zone)
    if ends_ms <= starts_ms:
        raise _refusal("endsAt", "must be later than startsAt")
    repeat_ends_ms = _read_repeat_end(body.repeat_ends_at, zone)
    rule = _rule_of(body, datetime.fromtimestamp(starts_ms // 1000, zone))
    once = Timing(
        starts_ms=starts_ms,
        ends_ms=ends_ms,
        rule=rule,
        time_zone=body.time_zone,
        over_ms=ends_ms,
    )
    if rule is None:
        return Plan(timing=once, repeat_ends_ms=repeat_ends_ms)
    try:
        timing = _repeating(once, rule, zone, repeat_ends_ms)
    except RecurrenceError as problem:
        raise _refusal("rrule", str(problem)) from problem
    return Plan(timing=timing, repeat_ends_ms=repeat_ends_ms)


def occurrence_at(window: WindowRow, now_ms: int) -> Occurrence | None:
    """The occurrence in which a time lies, the last to begin if several do. None: it is closed."""
    timing = window.timing
    begins = _begins_ms(timing, now_ms - timing.lasts_ms + 1, now_ms)
    latest_ms = max(begins, default=None)
    return None if latest_ms is None else _occurrence(window, latest_ms)


def next_occurrence(window: WindowRow, now_ms: int) -> Occurrence | None:
    """The first occurrence that begins after a time. None: there is none within ten years."""
    timing = window.timing
    low_ms = max(now_ms + 1, timing.starts_ms)
    # By the month first: most windows open again within one.
    for days in (31, 366, 366 * _NEXT_YEARS):
        begins = _begins_ms(timing, low_ms, low_ms + days * _DAY_MS)
        first_ms = min(begins, default=None)
        if first_ms is not None:
            return _occurrence(window, first_ms)
    return None


def occurrences_between(window: WindowRow, from_ms: int, to_ms: int) -> tuple[Occurrence, ...]:
    """Occurrences of which a part lies between two times (the second one exclusive), in order.

    They are at most `MOST_OCCURRENCES`, of `MOST_DAYS` after the first time.
    """
    end_ms = min(to_ms, from_ms + MOST_DAYS * _DAY_MS)
    begins = sorted(_begins_ms(window.timing, from_ms - window.timing.lasts_ms + 1, end_ms - 1))
    return tuple(_occurrence(window, at_ms) for at_ms in begins[:MOST_OCCURRENCES])


def _occurrence(window: WindowRow, begins_ms: int) -> Occurrence:
    return Occurrence(
        window_id=window.id,
        name=window.name,
        begins_ms=begins_ms,
        ends_ms=begins_ms + window.timing.lasts_ms,
    )


def _begins_ms(timing: Timing, low_ms: int, high_ms: int) -> Iterator[int]:
    """When it opens between two times, both included."""
    low_ms = max(low_ms, timing.starts_ms)
    high_ms = min(high_ms, timing.over_ms - timing.lasts_ms)
    if low_ms > high_ms:
        return
    if timing.rule is None:
        yield timing.starts_ms
        return
    zone = ZoneInfo(timing.time_zone)
    start = _wall(timing.starts_ms, zone)
    # A day more on both sides: what a change of the clocks moves does not cross a day.
    low = _wall(low_ms, zone).date() - timedelta(days=1)
    high = _wall(high_ms, zone).date() + timedelta(days=1)
    for at in recurrence.recur(recurrence.parse(timing.rule), start, low, high):
        at_ms = _to_ms(at, zone, rest_ms=timing.starts_ms % 1000)
        # Of an hour that the clock shows twice, the window's own first may be the second.
        at_ms = timing.starts_ms if at == start else at_ms
        if low_ms <= at_ms <= high_ms:
            yield at_ms


def _repeating(once: Timing, rule_text: str, zone: ZoneInfo, repeat_ends_ms: int | None) -> Timing:
    """The timing of a window that repeats; the rule is proven to have its first occurrence.

    Raises:
        InvalidError: it lasts too long, or ends before it begins.
        RecurrenceError: the rule is not taken.
    """
    if once.lasts_ms > MOST_REPEATING_DAYS * _DAY_MS:
        days = once.lasts_ms / _DAY_MS
        raise _refusal(
            "endsAt",
            f"is {days:.1f} days after startsAt; a window that repeats lasts"
            f" {MOST_REPEATING_DAYS} days at most",
        )
    rule, start = recurrence.parse(rule_text), _wall(once.starts_ms, zone)
    _require_first(rule, start)
    last_ms = [FOREVER_MS - once.lasts_ms]
    if repeat_ends_ms is not None:
        last_ms.append(repeat_ends_ms)
    if (until := recurrence.until_of(rule)) is not None:
        last_ms.append(_to_ms(until, zone, rest_ms=999))
    if (last := recurrence.last_by_count(rule, start)) is not None:
        last_ms.append(max(_to_ms(last, zone, rest_ms=once.starts_ms % 1000), once.starts_ms))
    if min(last_ms) < once.starts_ms:
        field = "repeatEndsAt" if min(last_ms) == repeat_ends_ms else "rrule"
        raise _refusal(field, "ends before startsAt")
    return Timing(
        starts_ms=once.starts_ms,
        ends_ms=once.ends_ms,
        rule=rule_text,
        time_zone=once.time_zone,
        over_ms=min(last_ms) + once.lasts_ms,
    )


def _require_first(rule: recurrence.Recurrence, start: datetime) -> None:
    """RFC 5545 leaves open what a rule means whose beginning does not fit it."""
    if start in recurrence.recur(rule, start, start.date(), start.date()):
        return
    end = start.date() + timedelta(days=366 * _NEXT_YEARS)
    first = next(recurrence.recur(rule, start, start.date(), end), None)
    advice = "it never recurs" if first is None else f"use {first.isoformat()} for startsAt"
    raise RecurrenceError(f"does not recur at startsAt, {start.isoformat()}; {advice}")


def _rule_of(body: WindowWrite, start: datetime) -> str | None:
    if body.rrule is not None:
        if body.repeat_interval is not None:
            raise _refusal("rrule", "is given with repeatInterval; omit one of them")
        return body.rrule
    if body.repeat_interval is None:
        return None
    if body.repeat_unit is None:
        raise _refusal(
            "repeatUnit", "is missing, and repeatInterval is given; use DAY, WEEK, MONTH"
        )
    every = f"INTERVAL={body.repeat_interval}"
    match body.repeat_unit:
        case "DAY":
            return f"FREQ=DAILY;{every}"
        case "WEEK":
            return f"FREQ=WEEKLY;{every}"
        case "MONTH" if start.day <= 28:
            return f"FREQ=MONTHLY;{every}"
        case "MONTH":
            # The last of these days that a month has.
            days = ",".join(map(str, range(28, start.day + 1)))
            return f"FREQ=MONTHLY;{every};BYMONTHDAY={days};BYSETPOS=-1"


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as problem:
        raise _refusal(
            "timeZone", f"is {format_value(name)}; use an IANA time zone such as Europe/Berlin"
        ) from problem


def _read_repeat_end(text: str | None, zone: ZoneInfo) -> int | None:
    # Clients written in Go send the year 1 for a time that is not set.
    if text is None or text.startswith("0001-"):
        return None
    at_ms = _read_time("repeatEndsAt", text, zone)
    if not _is_date(text):
        return at_ms
    following = date.fromisoformat(text) + timedelta(days=1)
    return _read_time("repeatEndsAt", following.isoformat(), zone) - 1


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _read_time(field: str, text: str, zone: ZoneInfo) -> int:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or not _FIRST_YEAR < at.year <= _LAST_YEAR:
        raise _refusal(
            field,
            f"is {format_value(text)}; use a time of the years {_FIRST_YEAR + 1} to {_LAST_YEAR},"
            " as in 2026-11-21T08:15:00Z",
        )
    aware = at if at.tzinfo else at.replace(tzinfo=zone)
    return int(aware.timestamp()) * 1000 + at.microsecond // 1000


def _wall(at_ms: int, zone: ZoneInfo) -> datetime:
    """What the clock on the wall of the zone shows, to the second."""
    return datetime.fromtimestamp(at_ms // 1000, zone).replace(tzinfo=None)


def _to_ms(at: datetime, zone: ZoneInfo, *, rest_ms: int) -> int:
    aware = at if at.tzinfo else at.replace(tzinfo=zone)
    return int(aware.timestamp()) * 1000 + rest_ms


def _refusal(field: str, sentence: str) -> InvalidError:
    return InvalidError(f'"{field}" {sentence}.', keys=(field,))
