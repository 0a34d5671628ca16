"""The parts of a Playwright configuration that a check may set. Pure."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from contract.near_names import near_name

Wrong = tuple[str, str]
"""The path of the wrong field inside the configuration, and the end of a sentence about it."""

MAX_TIMEOUT_MS: Final = 240_000
_MOST_DEPTH: Final = 8
_LARGEST_NUMBER: Final = 2**53


def _is_time(value: object) -> str | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and isinstance(value, int | float) and 0 <= value <= MAX_TIMEOUT_MS:
        return None
    return f"must be a number of milliseconds from 0 to {MAX_TIMEOUT_MS}"


def _is_flag(value: object) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _is_text(value: object) -> str | None:
    return None if isinstance(value, str) else "must be a string"


def _is_number(value: object) -> str | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return None if is_number else "must be a number"


def _is_object(value: object) -> str | None:
    return None if isinstance(value, Mapping) else "must be an object"


def _is_object_or_null(value: object) -> str | None:
    return None if value is None or isinstance(value, Mapping) else "must be an object or null"


def _is_texts(value: object) -> str | None:
    is_texts = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    return None if is_texts else "must be an array of strings"


def _is_headers(value: object) -> str | None:
    is_texts = isinstance(value, Mapping) and all(isinstance(one, str) for one in value.values())
    return None if is_texts else "must be an object of strings"


Judge = Callable[[object], str | None]

_EXPECT: Final[dict[str, Judge]] = {
    "timeout": _is_time,
    "toHaveScreenshot": _is_object,
    "toMatchSnapshot": _is_object,
}
_USE: Final[dict[str, Judge]] = {
    "actionTimeout": _is_time,
    "baseURL": _is_text,
    "bypassCSP": _is_flag,
    "colorScheme": _is_text,
    "connectOptions": _is_object,
    "contextOptions": _is_object,
    "deviceScaleFactor": _is_number,
    "extraHTTPHeaders": _is_headers,
    "geolocation": _is_object,
    "hasTouch": _is_flag,
    "httpCredentials": _is_object,
    "ignoreHTTPSErrors": _is_flag,
    "isMobile": _is_flag,
    "javaScriptEnabled": _is_flag,
    "locale": _is_text,
    "navigationTimeout": _is_time,
    "offline": _is_flag,
    "permissions": _is_texts,
    "proxy": _is_object,
    "testIdAttribute": _is_text,
    "timezoneId": _is_text,
    "viewport": _is_object_or_null,
}
_PARTS: Final[dict[str, Mapping[str, Judge]]] = {"use": _USE, "expect": _EXPECT}
_WHOLE: Final[dict[str, Judge]] = {"timeout": _is_time, "use": _is_object, "expect": _is_object}


def config_problem(config: Mapping[str, object]) -> Wrong | None:
    """The first field that a check may not set, or not so. None: all may stand."""
    return next(_problems(config), None)


def _problems(config: Mapping[str, object]) -> Iterator[Wrong]:
    yield from _of_fields(config, _WHOLE, "")
    for part, known in _PARTS.items():
        inside = config.get(part)
        if isinstance(inside, Mapping):
            yield from _of_fields(inside, known, f"{part}.")
            yield from _of_values(inside, f"{part}.")


def _of_fields(
    fields: Mapping[str, object], known: Mapping[str, Judge], path: str
) -> Iterator[Wrong]:
    for name, value in fields.items():
        judge = known.get(name)
        problem = judge(value) if judge else _unknown(name, known)
        if problem:
            yield f"{path}{name}", problem


def _unknown(name: str, known: Mapping[str, Judge]) -> str:
    meant = near_name(name, known)
    mend = f"did you mean {meant}?" if meant else f"use {', '.join(known)}"
    return f"cannot be set here; {mend}"


def _of_values(fields: Mapping[str, object], path: str) -> Iterator[Wrong]:
    for name, value in fields.items():
        if problem := _unwritable(value, depth=0):
            yield f"{path}{name}", problem


def _unwritable(value: object, *, depth: int) -> str | None:
    """Why a value cannot travel as JSON, or should not."""
    if depth > _MOST_DEPTH:
        return f"is nested deeper than {_MOST_DEPTH} levels"
    if isinstance(value, str):
        return _unwritable_text(value)
    if isinstance(value, int | float) and not abs(value) <= _LARGEST_NUMBER:
        return "holds a number that is too large" if math.isfinite(value) else "holds no number"
    inside: list[object] = []
    if isinstance(value, Mapping):
        inside = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple):
        inside = [*value]
    found = (_unwritable(one, depth=depth + 1) for one in inside)
    return next((problem for problem in found if problem), None)


def _unwritable_text(text: str) -> str | None:
    try:
        plain = b"\0" not in text.encode()
    except UnicodeEncodeError:
        plain = False
    return None if plain else "holds a NUL or half a surrogate pair"
