"""Dates as the `moment` and `date` helpers of templates know them: dayjs's tokens, in UTC.

Inputs: now, today, yesterday, tomorrow; `2 days ago`, `an hour ago`; `in a month`, `3 weeks`,
`1 year from now`; `last week`, `next month`; or an absolute date such as `2026-11-21` or
`2026-11-21T10:00:00Z`. All but the absolute ones keep the time of day of now.
"""

import calendar
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

LONG_FORMAT: Final = "MMMM D, YYYY"
"""What a date looks like when no format is given."""


class UnreadableDateError(ValueError):
    """A text that is no date; the text of the error says so."""


def read_date(text: str, now: datetime) -> datetime:
    """The date that a text speaks of.

    Raises:
        UnreadableDateError: the text is none of the inputs above, or leaves the calendar.
    """
    words = text.strip().lower()
    try:
        if words in _DAYS:
            return now + timedelta(days=_DAYS[words])
        for pattern, sign in _RELATIVE:
            if (found := pattern.fullmatch(words)) is not None:
                return _moved(now, sign * _count(found["count"]), found["unit"])
        return _absolute(text.strip())
    except (ValueError, OverflowError):
        raise UnreadableDateError(f"`{text}` is no date") from None


def is_date(text: str, now: datetime) -> bool:
    """Whether the text is an input rather than a format."""
    try:
        read_date(text, now)
    except UnreadableDateError:
        return False
    return True


def format_date(moment: datetime, pattern: str) -> str:
    """The date by dayjs's tokens; text in square brackets stays as it is."""
    return _TOKEN.sub(lambda found: _shown(moment, found), pattern)


def _shown(moment: datetime, found: re.Match[str]) -> str:
    literal: str | None = found["literal"]
    return literal if literal is not None else _TOKENS[found[0]](moment)


def _absolute(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _count(word: str) -> int:
    return 1 if word in ("", "a", "an") else int(word)


def _moved(now: datetime, count: int, unit: str) -> datetime:
    if unit in _SECONDS_PER:
        return now + timedelta(seconds=count * _SECONDS_PER[unit])
    months = now.year * 12 + now.month - 1 + count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    day = min(now.day, calendar.monthrange(year, month + 1)[1])
    return now.replace(year=year, month=month + 1, day=day)


_DAYS: Final = {"now": 0, "today": 0, "yesterday": -1, "tomorrow": 1}
_SECONDS_PER: Final = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "week": 7 * 86400,
}
_COUNT: Final = r"(?P<count>\d{1,9}|an?)\s+(?P<unit>second|minute|hour|day|week|month|year)s?"
_RELATIVE: Final = (
    (re.compile(rf"{_COUNT}\s+ago"), -1),
    (re.compile(rf"(?:in\s+)?{_COUNT}(?:\s+from\s+now)?"), 1),
    (re.compile(r"last\s+(?P<count>)(?P<unit>second|minute|hour|day|week|month|year)"), -1),
    (re.compile(r"next\s+(?P<count>)(?P<unit>second|minute|hour|day|week|month|year)"), 1),
)

_TOKEN: Final = re.compile(
    r"\[(?P<literal>[^\]]*)\]|YYYY|YY|MMMM|MMM|MM|M|DD|D|dddd|ddd|dd|d|HH|H|hh|h|mm|m|ss|s|SSS|"
    r"ZZ|Z|A|a|X|x"
)
_TOKENS: Final[Mapping[str, Callable[[datetime], str]]] = {
    "YYYY": lambda at: f"{at.year:04}",
    "YY": lambda at: f"{at.year % 100:02}",
    "MMMM": lambda at: calendar.month_name[at.month],
    "MMM": lambda at: calendar.month_abbr[at.month],
    "MM": lambda at: f"{at.month:02}",
    "M": lambda at: str(at.month),
    "DD": lambda at: f"{at.day:02}",
    "D": lambda at: str(at.day),
    "dddd": lambda at: calendar.day_name[at.weekday()],
    "ddd": lambda at: calendar.day_abbr[at.weekday()],
    "dd": lambda at: calendar.day_abbr[at.weekday()][:2],
    "d": lambda at: str(at.isoweekday() % 7),
    "HH": lambda at: f"{at.hour:02}",
    "H": lambda at: str(at.hour),
    "hh": lambda at: f"{at.hour % 12 or 12:02}",
    "h": lambda at: str(at.hour % 12 or 12),
    "mm": lambda at: f"{at.minute:02}",
    "m": lambda at: str(at.minute),
    "ss": lambda at: f"{at.second:02}",
    "s": lambda at: str(at.second),
    "SSS": lambda at: f"{at.microsecond // 1000:03}",
    "Z": lambda _: "+00:00",
    "ZZ": lambda _: "+0000",
    "A": lambda at: "AM" if at.hour < 12 else "PM",
    "a": lambda at: "am" if at.hour < 12 else "pm",
    "X": lambda at: str(int(at.timestamp())),
    "x": lambda at: str(int(at.timestamp() * 1000)),
}
