"""Creates, changes and removes maintenance windows."""

from typing import Any, Final

from sqlalchemy import Connection

from service.http.errors import ConflictError, NotFoundError
from service.maintenance import store
from service.maintenance.model import WindowRow, WindowWrite
from service.maintenance.rules import Plan
from service.vault.encryption import Scope

MOST_WINDOWS: Final = 500
"""An account has no more that are not over: each is read when a check is about to alert."""
_NOBODY: Final = 0
"""No window has this id."""


def find(connection: Connection, account_id: str, window_id: int) -> WindowRow:
    """A window of the account.

    Raises:
        NotFoundError: the account has none with this id.
    """
    row = store.find(connection, account_id, window_id)
    if row is None:
        raise NotFoundError(f"There is no maintenance window {window_id}.")
    return row


def create(connection: Connection, scope: Scope, body: WindowWrite, planned: Plan) -> WindowRow:
    """Set up a window.

    Raises:
        ConflictError: the account has too many.
    """
    _require_room(connection, scope, planned, but=_NOBODY)
    values = {"account_id": scope.account_id, "created_ms": scope.now_ms, "updated_ms": None}
    window_id = store.add(connection, {**_columns(body, planned), **values})
    return find(connection, scope.account_id, window_id)


def replace(
    connection: Connection, scope: Scope, window_id: int, body: WindowWrite, planned: Plan
) -> WindowRow:
    """Set a window up anew.

    Raises:
        NotFoundError: the account has no such window.
        ConflictError: the account has too many others that are not over.
    """
    find(connection, scope.account_id, window_id)
    _require_room(connection, scope, planned, but=window_id)
    values = {**_columns(body, planned), "updated_ms": scope.now_ms}
    store.change(connection, window_id, values)
    return find(connection, scope.account_id, window_id)


def delete(connection: Connection, scope: Scope, window_id: int) -> None:
    """Forget a window; one that is open ends now.

    Raises:
        NotFoundError: the account has no such window.
    """
    find(connection, scope.account_id, window_id)
    store.remove(connection, window_id)


def _require_room(connection: Connection, scope: Scope, planned: Plan, *, but: int) -> None:
    if planned.timing.over_ms <= scope.now_ms:
        return
    others = store.count_not_over(connection, scope.account_id, but=but, now_ms=scope.now_ms)
    if others >= MOST_WINDOWS:
        raise ConflictError(
            f"The account has {others} maintenance windows that are not over; delete one first."
        )


def _columns(body: WindowWrite, planned: Plan) -> dict[str, Any]:
    timing = planned.timing
    return {
        "name": body.name,
        "tags": list(dict.fromkeys(body.tags or ())),
        "is_announced": body.show_on_status_pages,
        "starts_ms": timing.starts_ms,
        "ends_ms": timing.ends_ms,
        "rule": timing.rule,
        "time_zone": timing.time_zone,
        "over_ms": timing.over_ms,
        "repeat_interval": body.repeat_interval,
        "repeat_unit": body.repeat_unit,
        "repeat_ends_ms": planned.repeat_ends_ms,
        "rrule": body.rrule,
    }
