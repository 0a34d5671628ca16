"""The one statement that every batch of results costs, on SQLite, by the driver."""

from collections.abc import Collection
from typing import Final

from sqlalchemy import Connection

from service.db.sqlite_group import driver

_MOST: Final = 1_000
"""How many checks a statement asks for; a location that is lost may end more runs at once."""
_STORED: Final = "SELECT check_id FROM alert_state WHERE check_id IN ({marks})"


def find_stored(connection: Connection, check_ids: Collection[str]) -> set[str]:
    """Those of the checks that have a state."""
    asked, sqlite, found = tuple(check_ids), driver(connection), set[str]()
    for start in range(0, len(asked), _MOST):
        some = asked[start : start + _MOST]
        rows = sqlite.execute(_STORED.format(marks=",".join("?" * len(some))), some)
        found.update(row[0] for row in rows)
    return found
