"""What happens to triggers; each is part of the caller's transaction.

Who may ask for a target is known before: routes find it in the caller's account first.
"""

from sqlalchemy import Connection

from service.accounts.keys import NewKey, Pepper, digest
from service.http.errors import NotFoundError
from service.triggers import store
from service.triggers.model import PREFIX, Target, TriggerRow


def create(
    connection: Connection, account_id: str, target: Target, *, key: NewKey, now_ms: int
) -> TriggerRow:
    """Make the target's trigger with this token; one that it had opens nothing any more."""
    store.forget(connection, target)
    store.add(connection, account_id, target, key=key, now_ms=now_ms)
    return find(connection, target)


def find(connection: Connection, target: Target) -> TriggerRow:
    """The target's trigger.

    Raises:
        NotFoundError: it has none.
    """
    row = store.find(connection, target)
    if row is None:
        raise NotFoundError(f"The {target.runs} {target.owner_id} has no trigger.")
    return row


def delete(connection: Connection, target: Target) -> None:
    """End the target's trigger.

    Raises:
        NotFoundError: it has none.
    """
    find(connection, target)
    store.forget(connection, target)


def forget(connection: Connection, target: Target) -> None:
    """The target goes, and so does its trigger, if there is one."""
    store.forget(connection, target)


def opened_by(
    connection: Connection, target: Target, *, token: str, pepper: Pepper
) -> TriggerRow | None:
    """The trigger of this target that the token opens. None: none."""
    return store.of_token(connection, target, pepper.keyed(digest(token)))


def new_token(pepper: Pepper) -> NewKey:
    """A fresh token."""
    return pepper.new_key(PREFIX)


def note_call(connection: Connection, row: TriggerRow, *, now_ms: int) -> None:
    """The trigger's link was called."""
    store.note_call(connection, row.id, now_ms=now_ms)
