r"""Fills variables, `$UUID` and dates into the texts of a request.

`{{NAME}}` is URI-encoded like a whole URL (`a b` becomes `a%20b`, `https://host/` stays), in
URL, headers, body and basic auth alike; `{{{NAME}}}` is not. Query values are not encoded here:
the request encodes them when it is built, and encoding them twice would be wrong.

Helpers: `$UUID`, `$RANDOM_NUMBER` (0 to 10000), and `moment` or `date` with an input and a format,
both optional and in quotes. A variable of the same name wins.
A backslash before the braces keeps them: `\{{NAME}}` sends `{{NAME}}`.
A name that is not set raises an error, so that no wrong URL is requested.

`moment` and `date` use the format tokens of dayjs, in UTC. Their inputs:
now, today, yesterday, tomorrow; `2 days ago`, `an hour ago`; `in a month`, `3 weeks`,
`1 year from now`; `last week`, `next month`; or an absolute date such as `2026-11-21` or
`2026-11-21T10:00:00Z`. All but the absolute ones keep the time of day of now.
"""

import calendar
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final
from urllib.parse import quote
from uuid import UUID

import msgspec

from contract.job import Variable
from contract.requests import BasicAuth, HttpRequest, KeyValue
from contract.result import CheckFailed, FailureKind

UNENCODED: Final = ";,/?:@&=+$-_.!~*'()#"
"""The characters that URI encoding keeps, beside letters and digits."""

_PLACE: Final = re.compile(r"\\(\{\{[^{}]*\}\})|\{\{\{([^{}]+)\}\}\}|\{\{([^{}]+)\}\}")


class VariableError(CheckFailed):
    """A variable cannot be filled in; the check's configuration is at fault."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(FailureKind.SCRIPT, message, {"variable": name})


@dataclass(frozen=True, slots=True)
class Filling:
    """Values for the variables; clock and random numbers are passed in, so that `fill` is pure."""

    variables: Mapping[str, str]
    now: datetime
    """The current time in UTC, for `moment` and `date`."""
    random: Random
    """The source of `$UUID` and `$RANDOM_NUMBER`."""


def fill(text: str, filling: Filling, *, encode: bool = True) -> str:
    """Return the text with all variables filled in.

    Raises:
        VariableError: a variable is not set, or a date cannot be read.
    """
    if "{{" not in text:
        return text
    return _PLACE.sub(lambda place: _fill(place, filling, encode=encode), text)


def fill_request(
    request: HttpRequest,
    variables: Iterable[Variable],
    *,
    now: Callable[[], datetime],
    random: Random,
) -> HttpRequest:
    """Return the request with all variables filled in, or the same object if it has none.

    The other fields can use the filled-in URL as `REQUEST_URL`.

    Raises:
        VariableError: a variable is not set, or a date cannot be read.
    """
    if not _has_places(request):
        return request
    values = {variable.key: variable.value for variable in variables}
    filling = Filling(variables=values, now=now(), random=random)
    url = fill(request.url, filling)
    values.setdefault("REQUEST_URL", url)
    return msgspec.structs.replace(
        request,
        url=url,
        body=fill(request.body, filling),
        headers=_fill_pairs(request.headers, filling, encode=True),
        query_parameters=_fill_pairs(request.query_parameters, filling, encode=False),
        basic_auth=_fill_basic_auth(request.basic_auth, filling),
    )


def _has_places(request: HttpRequest) -> bool:
    if "{{" in request.url or "{{" in request.body:
        return True
    for pair in request.headers:
        if "{{" in pair.value or "{{" in pair.key:
            return True
    for pair in request.query_parameters:
        if "{{" in pair.value or "{{" in pair.key:
            return True
    auth = request.basic_auth
    return auth is not None and ("{{" in auth.username or "{{" in auth.password)


def _fill_pairs(
    pairs: tuple[KeyValue, ...], filling: Filling, *, encode: bool
) -> tuple[KeyValue, ...]:
    return tuple(
        msgspec.structs.replace(
            pair,
            key=fill(pair.key, filling, encode=encode),
            value=fill(pair.value, filling, encode=encode),
        )
        for pair in pairs
    )


def _fill_basic_auth(auth: BasicAuth | None, filling: Filling) -> BasicAuth | None:
    if auth is None:
        return None
    return BasicAuth(username=fill(auth.username, filling), password=fill(auth.password, filling))


def _fill(place: re.Match[str], filling: Filling, *, encode: bool) -> str:
    literal, verbatim, encoded = place.groups()
    if literal is not None:
        return str(literal)
    expression = (verbatim or encoded).strip()
    if not expression:
        return place[0]
    value = _value(expression, filling)
    return quote(value, safe=UNENCODED) if encode and verbatim is None else value


def _value(expression: str, filling: Filling) -> str:
    if expression in filling.variables:
        return filling.variables[expression]
    name, *_ = expression.split(maxsplit=1)
    match name:
        case "$UUID":
            return str(UUID(int=filling.random.getrandbits(128), version=4))
        case "$RANDOM_NUMBER":
            return str(filling.random.randint(0, 10_000))
        case "moment" | "date":
            return _date(expression, filling.now)
        case _:
            raise VariableError(f"The variable {name} is not set.", name)


def _date(expression: str, now: datetime) -> str:
    try:
        name, *arguments = shlex.split(expression)
        if len(arguments) > 2:
            raise UnreadableDateError(f"{name} takes an input and a format")
        moment, pattern = _date_arguments(arguments, now)
    except ValueError as problem:
        raise VariableError(f"{{{{{expression}}}}} cannot be filled: {problem}.", "date") from None
    return format_date(moment, pattern)


def _date_arguments(arguments: list[str], now: datetime) -> tuple[datetime, str]:
    """Return input and format; a single argument is an input if it can be read as a date."""
    match arguments:
        case [text, pattern]:
            return read_date(text, now), pattern
        case [text] if is_date(text, now):
            return read_date(text, now), LONG_FORMAT
        case [pattern]:
            return now, pattern
        case _:
            return now, LONG_FORMAT


LONG_FORMAT: Final = "MMMM D, YYYY"
"""The default format of a date."""


class UnreadableDateError(ValueError):
    """A text is not a date; the message says so."""


def read_date(text: str, now: datetime) -> datetime:
    """Return the date that a text describes.

    Raises:
        UnreadableDateError: the text is none of the inputs above, or leaves the calendar.
    """
    words = text.strip().lower()
    try:
        if words in _DAYS:
            return now + timedelta(days=_DAYS[words])
        for pattern, sign in _RELATIVE:
            if (found := pattern.fullmatch(words)) is not None:
                return _move(now, sign * _count(found["count"]), found["unit"])
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
    """Format the date by dayjs's tokens; text in square brackets is kept as it is."""
    return _TOKEN.sub(lambda found: _render(moment, found), pattern)


def _render(moment: datetime, found: re.Match[str]) -> str:
    literal: str | None = found["literal"]
    return literal if literal is not None else _TOKENS[found[0]](moment)


def _absolute(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _count(word: str) -> int:
    return 1 if word in ("", "a", "an") else int(word)


def _move(now: datetime, count: int, unit: str) -> datetime:
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
