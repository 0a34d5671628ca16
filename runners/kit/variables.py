r"""Fill `{{NAME}}` and helpers into the texts of a request.

`{{NAME}}` is URI-encoded like a whole address (`a b` becomes `a%20b`, `https://host/` stays), in
URL, headers, body and basic auth alike; `{{{NAME}}}` is not. Query values are not encoded here:
the request encodes them when it is built, and twice would be wrong.

Helpers: `$UUID`, `$RANDOM_NUMBER` (0 to 10000), and `moment` or `date` with an input and a format
of `runners.kit.dates`, both optional and in quotes. A variable of the same name wins.
A backslash before the braces keeps them: `\{{NAME}}` sends `{{NAME}}`.
A name that is not set raises, rather than probing a wrong address.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Final
from urllib.parse import quote
from uuid import UUID

import msgspec

from contract.job import Variable
from contract.requests import BasicAuth, HttpRequest, KeyValue
from contract.result import FailureKind
from runners.kit.dates import LONG_FORMAT, UnreadableDateError, format_date, is_date, read_date
from runners.kit.failures import CheckFailed

UNENCODED: Final = ";,/?:@&=+$-_.!~*'()#"
"""What an address may hold anywhere; letters and digits stay too."""

_PLACE: Final = re.compile(r"\\(\{\{[^{}]*\}\})|\{\{\{([^{}]+)\}\}\}|\{\{([^{}]+)\}\}")


class VariableError(CheckFailed):
    """A text cannot be filled; the check's own configuration is at fault."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(FailureKind.SCRIPT, message, {"variable": name})


@dataclass(frozen=True, slots=True)
class Filling:
    """What goes into the places; the clock and the dice are given, so that filling is pure."""

    variables: Mapping[str, str]
    now: datetime
    """For `moment` and `date`; in UTC."""
    random: Random
    """For `$UUID` and `$RANDOM_NUMBER`."""


def fill(text: str, filling: Filling, *, encode: bool = True) -> str:
    """The text with every place filled.

    Raises:
        VariableError: a variable is not set, or a date cannot be read.
    """
    if "{{" not in text:
        return text
    return _PLACE.sub(lambda place: _filled(place, filling, encode=encode), text)


def fill_request(
    request: HttpRequest,
    variables: Iterable[Variable],
    *,
    now: Callable[[], datetime],
    random: Random,
) -> HttpRequest:
    """The request with every place filled; the same object when it has none.

    `REQUEST_URL` is the filled URL, for the other fields.

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


def _filled(place: re.Match[str], filling: Filling, *, encode: bool) -> str:
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
    """Input and format; one argument alone is an input if it can be read as one."""
    match arguments:
        case [text, pattern]:
            return read_date(text, now), pattern
        case [text] if is_date(text, now):
            return read_date(text, now), LONG_FORMAT
        case [pattern]:
            return now, pattern
        case _:
            return now, LONG_FORMAT
