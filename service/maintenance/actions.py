"""What other features ask about maintenance; each is part of the caller's transaction."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from service.maintenance import store
from service.maintenance.model import Occurrence, WindowFilter, WindowRow
from service.maintenance.rules import next_occurrence, occurrence_at, occurrences_between

_SHOWN: Final = 3
"""How many occurrences to come a list shows of a window."""
_ANNOUNCED_MS: Final = 7 * 86_400_000
"""How long before it begins an occurrence is announced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upcoming:
    """A window with when it is open."""

    window: WindowRow
    now: Occurrence | None
    """None: it is closed."""
    next: tuple[Occurrence, ...]
    """The following ones, in order."""


def list_upcoming(
    connection: Connection,
    account_id: str,
    *,
    now_ms: int,
    limit: int,
    offset: int,
) -> tuple[Upcoming, ...]:
    """A page of windows, oldest first, each with the next times that it opens."""
    anytime = WindowFilter(None, None)
    rows = store.list_page(connection, account_id, anytime, limit=limit, offset=offset)
    return tuple(
        Upcoming(window=row, now=occurrence_at(row, now_ms), next=tuple(_following(row, now_ms)))
        for row in rows
    )


def _following(row: WindowRow, now_ms: int) -> Iterator[Occurrence]:
    after_ms = now_ms
    for _ in range(_SHOWN):
        found = next_occurrence(row, after_ms)
        if found is None:
            return
        yield found
        after_ms = found.begins_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWindow:
    """A window that is open now."""

    window: WindowRow
    now: Occurrence


def list_open(connection: Connection, account_id: str, *, now_ms: int) -> tuple[OpenWindow, ...]:
    """The windows that are open now, the last one to close first."""
    windows = store.list_between(connection, account_id, now_ms, now_ms + 1)
    found = [(one, occurrence_at(one, now_ms)) for one in windows]
    opened = [OpenWindow(window=one, now=now) for one, now in found if now is not None]
    return tuple(sorted(opened, key=lambda one: (-one.now.ends_ms, one.window.id)))


def find_applying(opened: Iterable[OpenWindow], tags: Collection[str]) -> Occurrence | None:
    """When the first window is open that applies to a check with these tags. None: none does."""
    return next((one.now for one in opened if one.window.applies_to(tags)), None)


def list_announced(
    connection: Connection, account_id: str, *, now_ms: int
) -> tuple[tuple[WindowRow, Occurrence], ...]:
    """What status pages announce: for each window its occurrence now or, within a week, the next.

    The first to begin comes first.
    """
    until_ms = now_ms + _ANNOUNCED_MS
    windows = store.list_between(connection, account_id, now_ms, until_ms)
    found = [
        (one, occurrence)
        for one in windows
        if one.is_announced
        and (occurrence := occurrence_at(one, now_ms) or next_occurrence(one, now_ms))
        and occurrence.begins_ms <= until_ms
    ]
    return tuple(sorted(found, key=lambda pair: (pair[1].begins_ms, pair[0].id)))


def find_open(
    connection: Connection, account_id: str, tags: Collection[str], *, now_ms: int
) -> WindowRow | None:
    """The window that is open for a check with these tags: its own, and those of its group."""
    windows = store.list_between(connection, account_id, now_ms, now_ms + 1)
    is_open = (one for one in windows if one.applies_to(tags) and occurrence_at(one, now_ms))
    return next(is_open, None)


def windows_between(
    connection: Connection, account_id: str, tags: Collection[str], from_ms: int, to_ms: int
) -> tuple[Occurrence, ...]:
    """When windows are open for a check with these tags between two times, by their beginning.

    Occurrences may overlap. See `rules.occurrences_between` for how many there are at most.
    """
    windows = store.list_between(connection, account_id, from_ms, to_ms)
    found = [
        occurrence
        for one in windows
        if one.applies_to(tags)
        for occurrence in occurrences_between(one, from_ms, to_ms)
    ]
    return tuple(sorted(found, key=lambda one: (one.begins_ms, one.window_id)))


def list_all(connection: Connection, account_id: str, *, limit: int) -> tuple[WindowRow, ...]:
    """The first windows of an account."""
    anything = WindowFilter(starts_from_ms=None, ends_by_ms=None)
    return store.list_page(connection, account_id, anything, limit=limit, offset=0)
