"""What other features ask about maintenance; each is part of the caller's transaction."""

from collections.abc import Collection

from sqlalchemy import Connection

from service.maintenance import store
from service.maintenance.model import Occurrence
from service.maintenance.rules import occurrence_at, occurrences_between


def is_in_maintenance(
    connection: Connection, account_id: str, tags: Collection[str], *, now_ms: int
) -> bool:
    """Whether a window is open for a check with these tags: its own, and those of its group."""
    windows = store.list_between(connection, account_id, now_ms, now_ms + 1)
    return any(one.applies_to(tags) and occurrence_at(one, now_ms) is not None for one in windows)


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
