"""When something recurs, by a rule of RFC 5545, in work that is bounded for every rule.

python-dateutil evaluates the rule. Its iterators look for the next occurrence as far as the year
9999, which takes seconds for a rule that has none (`BYMONTH=2;BYMONTHDAY=30`). Here it is asked
for one month or one year at a time: the interval of the rule that it gets leads beyond the year
9999, so that it ends after the first period. Which periods count by the rule's own interval is
arithmetic.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import IntEnum
from functools import lru_cache
from typing import Final, cast

from dateutil import rrule
from dateutil.rrule import rrulestr

from contract.targets import format_value


class Frequency(IntEnum):
    """The units of a recurrence, as python-dateutil numbers them."""

    YEARLY = rrule.YEARLY
    MONTHLY = rrule.MONTHLY
    WEEKLY = rrule.WEEKLY
    DAILY = rrule.DAILY


MOST_LETTERS: Final = 500
"""The longest text of a rule."""
MOST_COUNT: Final = 1_000
"""The highest COUNT."""
_MOST_INTERVAL: Final = 1_000
_MOST_A_DAY: Final = 24
_COUNT_YEARS: Final = 100
"""How far COUNT is followed; a rule that has not used it up then goes on for ever."""
_WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_ANY_DAY: Final = ",".join(map(str, range(1, 32)))
_BEYOND: Final = 12 * 9_999
"""An interval of as many months or years: python-dateutil ends after one period."""
_TIMES: Final = ("BYHOUR", "BYMINUTE", "BYSECOND")
_DAYS: Final = ("BYDAY", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO")
_EVERY: Final = frozenset({"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYMONTH", *_TIMES})
_PARTS: Final[Mapping[Frequency, frozenset[str]]] = {
    Frequency.DAILY: _EVERY | {"BYDAY", "BYMONTHDAY"},
    Frequency.WEEKLY: _EVERY | {"BYDAY"},
    Frequency.MONTHLY: _EVERY | {"BYDAY", "BYMONTHDAY", "BYSETPOS"},
    Frequency.YEARLY: _EVERY | {*_DAYS, "BYSETPOS"},
}
"""The parts that have a meaning with each frequency (RFC 5545, section 3.3.10)."""


_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "BYSECOND": (0, 59),
    "BYMINUTE": (0, 59),
    "BYHOUR": (0, 23),
    "BYMONTH": (1, 12),
    "BYMONTHDAY": (1, 31),
    "BYYEARDAY": (1, 366),
    "BYWEEKNO": (1, 53),
    "BYSETPOS": (1, 366),
}
"""The numbers of each part; those from 1 on may count from the end, except months."""


class RecurrenceError(ValueError):
    """A rule that is not taken: what is wrong with it, in the words that follow its field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """A rule of RFC 5545 that was read."""

    frequency: Frequency
    interval: int
    """Every how many units."""
    week_start: int
    """The day on which weeks begin, from Monday as 0."""
    count: int | None
    """How many occurrences there are. None: any number."""
    until: str | None
    """UNTIL, as it was written. None: for ever."""
    filters: str
    """The parts that begin with BY, as they were written."""


@lru_cache(maxsize=1_024)
def parse(text: str) -> Recurrence:
    """Read a rule such as `FREQ=WEEKLY;BYDAY=SU`.

    Raises:
        RecurrenceError: it is no rule of RFC 5545, or one that is not taken.
    """
    parts = _split(text)
    frequency = _frequency(parts.get("FREQ", ""))
    if unknown := sorted(parts.keys() - _PARTS[frequency]):
        raise RecurrenceError(
            f"has {unknown[0]}, which has no meaning with FREQ={frequency.name}; leave it out"
        )
    _require_values(parts, frequency)
    if "COUNT" in parts and "UNTIL" in parts:
        raise RecurrenceError("has COUNT and UNTIL; leave one of them out")
    _require_few_a_day(parts)
    week_start = parts.get("WKST", "MO")
    if week_start not in _WEEKDAYS:
        raise RecurrenceError(f"has WKST={format_value(week_start)}; use {', '.join(_WEEKDAYS)}")
    return Recurrence(
        frequency=frequency,
        interval=_number(parts, "INTERVAL", _MOST_INTERVAL) or 1,
        week_start=_WEEKDAYS.index(week_start),
        count=_number(parts, "COUNT", MOST_COUNT),
        until=parts.get("UNTIL"),
        filters=";".join(f"{name}={value}" for name, value in parts.items() if name[:2] == "BY"),
    )


def _split(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.strip().upper().removeprefix("RRULE:").removesuffix(";").split(";"):
        name, equals, value = part.partition("=")
        if not equals or not value or name in found:
            raise RecurrenceError(
                f"has the part {format_value(part)}; use NAME=VALUE, each name once, as in"
                " FREQ=WEEKLY;BYDAY=SU"
            )
        found[name] = value
    return found


def _frequency(name: str) -> Frequency:
    if name in Frequency.__members__:
        return Frequency[name]
    raise RecurrenceError(
        f"has FREQ={name or '(none)'}; use DAILY, WEEKLY, MONTHLY or YEARLY"
        if name not in {"SECONDLY", "MINUTELY", "HOURLY"}
        else f"has FREQ={name}, which is too often; use DAILY, with BYHOUR for several times a day"
    )


def _require_few_a_day(parts: Mapping[str, str]) -> None:
    times = 1
    for name in _TIMES:
        times *= len(parts.get(name, "0").split(","))
    if times > _MOST_A_DAY:
        raise RecurrenceError(f"recurs {times} times a day; at most {_MOST_A_DAY} are taken")


def _require_values(parts: Mapping[str, str], frequency: Frequency) -> None:
    """python-dateutil fails in other ways on numbers that are out of range."""
    for name in sorted(parts.keys() & _RANGES.keys()):
        low, high = _RANGES[name]
        for value in parts[name].split(","):
            from_end = low == 1 and name != "BYMONTH"
            number = re.sub(r"^[+-]", "", value) if from_end else value
            if not (_is_number(number) and low <= int(number) <= high):
                both = f", or -{high} to -{low}" if from_end else ""
                raise RecurrenceError(f"has {name}={value[:20]}; use {low} to {high}{both}")
    by_month = frequency is Frequency.MONTHLY or "BYMONTH" in parts
    most = 0 if frequency > Frequency.MONTHLY else 5 if by_month else 53
    for value in parts.get("BYDAY", "MO").split(","):
        number = re.sub(r"^[+-](?=.)", "", value[:-2]) or "0"
        if value[-2:] not in _WEEKDAYS or not _is_number(number) or int(number) > most:
            which = f", with a number up to {most} before it or none" if most else ""
            raise RecurrenceError(f"has BYDAY={value[:20]}; use {', '.join(_WEEKDAYS)}{which}")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _number(parts: Mapping[str, str], name: str, most: int) -> int | None:
    if (text := parts.get(name)) is None:
        return None
    if not (_is_number(text) and 0 < int(text) <= most):
        raise RecurrenceError(f"has {name}={text[:20]}; use 1 to {most}")
    return int(text)


def until_of(rule: Recurrence) -> datetime | None:
    """The last moment at which it may recur: in UTC, or without a zone. None: any.

    Raises:
        RecurrenceError: UNTIL is no date and no time.
    """
    if rule.until is None:
        return None
    for form in ("%Y%m%dT%H%M%SZ", "%Y%m%dT%H%M%S", "%Y%m%d"):
        try:
            at = datetime.strptime(rule.until, form)  # noqa: DTZ007 - the zone is the caller's
        except ValueError:
            continue
        if form.endswith("Z"):
            return at.replace(tzinfo=UTC)
        return at if "T" in form else datetime.combine(at, time.max.replace(microsecond=0))
    raise RecurrenceError(
        f"has UNTIL={format_value(rule.until)}; use a date or a time, as in 20261231T235959Z"
    )


def recur(rule: Recurrence, start: datetime, low: date, high: date) -> Iterator[datetime]:
    """When it recurs from a day to another one, both included, in order, from the start on.

    Times are those of a clock on the wall: they have no zone. COUNT and UNTIL are not followed.

    Raises:
        RecurrenceError: python-dateutil does not take the rule.
    """
    template, phase = _template(rule, start), _index(rule, start.date())
    yearly = rule.frequency is Frequency.YEARLY
    for first in _periods(max(low, start.date()), high, yearly=yearly):
        if _is_skipped(rule, first, phase):
            continue
        for at in template.replace(dtstart=first):
            counts = (_index(rule, at.date()) - phase) % rule.interval == 0
            if counts and at >= start and low <= at.date() <= high:
                yield at


def last_by_count(rule: Recurrence, start: datetime) -> datetime | None:
    """When it recurs for the last time by its COUNT. None: it has none, or a far end."""
    if rule.count is None:
        return None
    end = start.date() + timedelta(days=366 * _COUNT_YEARS)
    for number, at in enumerate(recur(rule, start, start.date(), end), start=1):
        if number == rule.count:
            return at
    return None


@lru_cache(maxsize=1_024)
def _template(rule: Recurrence, start: datetime) -> rrule.rrule:
    """The rule for one month, or one year if it is yearly, with all that the start implies.

    Days and weeks are asked for by the month too: python-dateutil goes through all months to get
    over a long interval of days.
    """
    parts = dict(part.split("=") for part in rule.filters.split(";") if part)
    for name, value in zip(_TIMES, (start.hour, start.minute, start.second), strict=True):
        parts.setdefault(name, str(value))
    if not parts.keys() & set(_DAYS):
        parts |= _implied_days(rule.frequency, start, parts)
    if rule.frequency > Frequency.MONTHLY:
        parts.setdefault("BYMONTHDAY", _ANY_DAY)
    of = Frequency.YEARLY if rule.frequency is Frequency.YEARLY else Frequency.MONTHLY
    text = ";".join(f"{name}={value}" for name, value in parts.items())
    week_start = _WEEKDAYS[rule.week_start]
    line = f"FREQ={of.name};INTERVAL={_BEYOND};WKST={week_start};{text}"
    # One line without dates is one rule.
    return cast("rrule.rrule", rrulestr(line, dtstart=datetime.combine(start, time.min)))


def _implied_days(
    frequency: Frequency, start: datetime, parts: Mapping[str, str]
) -> dict[str, str]:
    match frequency:
        case Frequency.YEARLY:
            month = parts.get("BYMONTH", str(start.month))
            return {"BYMONTH": month, "BYMONTHDAY": str(start.day)}
        case Frequency.MONTHLY:
            return {"BYMONTHDAY": str(start.day)}
        case Frequency.WEEKLY:
            return {"BYDAY": _WEEKDAYS[start.weekday()]}
        case Frequency.DAILY:
            return {}


def _periods(low: date, high: date, *, yearly: bool) -> Iterator[datetime]:
    """The beginnings of the months or years that lie between two days."""
    at = date(low.year, 1 if yearly else low.month, 1)
    while at <= high:
        yield datetime.combine(at, time.min)
        months = at.year * 12 + at.month - 1 + (12 if yearly else 1)
        at = date(months // 12, months % 12 + 1, 1)


def _is_skipped(rule: Recurrence, first: datetime, phase: int) -> bool:
    """Whether the interval leaves out the whole month or year."""
    whole = rule.frequency <= Frequency.MONTHLY
    return whole and (_index(rule, first.date()) - phase) % rule.interval != 0


def _index(rule: Recurrence, day: date) -> int:
    """The number of the day, week, month or year, counted from any beginning."""
    match rule.frequency:
        case Frequency.YEARLY:
            return day.year
        case Frequency.MONTHLY:
            return day.year * 12 + day.month
        case Frequency.WEEKLY:
            # The first day of the first year was a Monday, and has the number 1.
            return (day.toordinal() - 1 - rule.week_start) // 7
        case Frequency.DAILY:
            return day.toordinal()
