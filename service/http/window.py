"""Times in queries: seconds since 1970, or ISO 8601."""

from datetime import UTC, datetime
from typing import Final

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
        raise InvalidError(
            f'"{name}" must be a time: seconds since 1970, or ISO 8601 as in 2026-11-21T08:15:00Z.',
            keys=(name,),
            source="query",
        )
    return found


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
