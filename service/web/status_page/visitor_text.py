"""Times and texts as visitors read them."""

import re
from datetime import UTC, datetime
from typing import Final

_S: Final = 1000
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def only_xml(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return _NOT_XML.sub("", text)


def format_time_of_day(at_ms: int) -> str:
    """A time of today: `02:58 UTC`."""
    return f"{_datetime(at_ms):%H:%M} UTC"


def format_date(at_ms: int) -> str:
    """A day: `27 November 2026`."""
    at = _datetime(at_ms)
    return f"{at.day} {at:%B %Y}"


def format_day(at_ms: int) -> str:
    """A day of the last months: `27 Nov`."""
    at = _datetime(at_ms)
    return f"{at.day} {at:%b}"


def format_month(at_ms: int) -> str:
    """A month: `November 2026`."""
    return f"{_datetime(at_ms):%B %Y}"


def format_day_and_time(at_ms: int) -> str:
    """A time of the last months: `27 Nov, 02:58 UTC`."""
    return f"{format_day(at_ms)}, {format_time_of_day(at_ms)}"


def format_since(at_ms: int, *, now_ms: int) -> str:
    """Since when: `02:58 UTC` today, else `26 Nov, 02:58 UTC`."""
    same_day = _datetime(at_ms).date() == _datetime(now_ms).date()
    return format_time_of_day(at_ms) if same_day else format_day_and_time(at_ms)


def format_span(began_ms: int, ended_ms: int) -> str:
    """From when to when: `3 Nov, 14:02 to 15:10 UTC`."""
    began, ended = _datetime(began_ms), _datetime(ended_ms)
    if began.date() == ended.date():
        return f"{format_day(began_ms)}, {began:%H:%M} to {format_time_of_day(ended_ms)}"
    return f"{format_day(began_ms)}, {began:%H:%M} to {format_day_and_time(ended_ms)}"


def _datetime(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / _S, UTC)
