"""Times in queries: seconds since 1970, or ISO 8601."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import Depends, Query

from contract.sent_values import told
from service.http.errors import InvalidError

_MILLISECONDS_FROM: Final = 100_000_000_000
"""As seconds this is the year 5138; clients that send so much mean milliseconds."""
_LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999."""


def query_time_ms(name: str, text: str | None) -> int | None:
    """Milliseconds since 1970. None: not asked for.

    Raises:
        InvalidError: it is no time.
    """
    if not text:
        return None
    found = _number_ms(text) if _is_number(text) else _iso_ms(text)
    if found is None or not 0 <= found <= _LAST_MS:
        raise no_time(name, text)
    return found


def no_time(name: str, text: str) -> InvalidError:
    """The refusal of a text that is none."""
    return InvalidError(
        f'"{name}" is {told(text)}; use a time: seconds since 1970, or ISO 8601 as in'
        " 2026-11-21T08:15:00Z.",
        keys=(name,),
        source="query",
    )


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the past."""

    from_ms: int | None
    """Inclusive. None: not said."""
    to_ms: int | None
    """Exclusive. None: not said."""

    def closed(self, *, from_ms: int, now_ms: int) -> tuple[int, int]:
        """Both ends; those that were not said are these, and nothing lies after now."""
        end_ms = now_ms + 1 if self.to_ms is None else self.to_ms
        return min(from_ms, end_ms) if self.from_ms is None else self.from_ms, end_ms


def _window(
    start: Annotated[
        str | None,
        Query(alias="startTime", description="Seconds since 1970, or ISO 8601; inclusive."),
    ] = None,
    end: Annotated[
        str | None,
        Query(alias="endTime", description="Seconds since 1970, or ISO 8601; exclusive."),
    ] = None,
) -> Window:
    return Window(*query_window_ms(("startTime", start), ("endTime", end)))


WindowDep = Annotated[Window, Depends(_window)]


def query_window_ms(
    begin: tuple[str, str | None], end: tuple[str, str | None]
) -> tuple[int | None, int | None]:
    """Both ends of a window, each sent under a name; in ms since 1970. None: not asked for.

    Raises:
        InvalidError: one of them is no time, or the window ends before it begins.
    """
    from_ms, to_ms = query_time_ms(*begin), query_time_ms(*end)
    if from_ms is not None and to_ms is not None and from_ms > to_ms:
        raise InvalidError(
            f'"{begin[0]}" is later than "{end[0]}"; swap them.',
            keys=(begin[0], end[0]),
            source="query",
        )
    return from_ms, to_ms


def _is_number(text: str) -> bool:
    return text.isascii() and text.replace(".", "", 1).isdigit() and len(text) <= 20


def _number_ms(text: str) -> int:
    number = float(text)
    return int(number if number >= _MILLISECONDS_FROM else number * 1000)


def _iso_ms(text: str) -> int | None:
    try:
        at = datetime.fromisoformat(text.replace(" ", "+"))
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return int(at.timestamp() * 1000)
