"""Trigger links, kept and found.

What happens to triggers; each is part of the caller's transaction.

Who may ask for a target is known before: routes find it in the caller's account first.
"""

from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, insert, select, update
from sqlalchemy import delete as sqlalchemy_delete

from service.accounts.keys import NewKey, Pepper, digest
from service.db.tables.runs import run_trigger
from service.http.errors import NotFoundError
from service.triggers.model import PREFIX, Target, TriggerRow


def create(
    connection: Connection, account_id: str, target: Target, *, key: NewKey, now_ms: int
) -> TriggerRow:
    """Make the target's trigger with this token; one that it had opens nothing any more."""
    delete_link(connection, target)
    add(connection, account_id, target, key=key, now_ms=now_ms)
    return find(connection, target)


def find(connection: Connection, target: Target) -> TriggerRow:
    """The target's trigger.

    Raises:
        NotFoundError: it has none.
    """
    row = select_link(connection, target)
    if row is None:
        raise NotFoundError(f"The {target.runs} {target.owner_id} has no trigger.")
    return row


def delete(connection: Connection, target: Target) -> None:
    """End the target's trigger.

    Raises:
        NotFoundError: it has none.
    """
    find(connection, target)
    delete_link(connection, target)


def forget(connection: Connection, target: Target) -> None:
    """The target goes, and so does its trigger, if there is one."""
    delete_link(connection, target)


def opened_by(
    connection: Connection, target: Target, *, token: str, pepper: Pepper
) -> TriggerRow | None:
    """The trigger of this target that the token opens. None: none."""
    return of_token(connection, target, pepper.keyed(digest(token)))


def new_token(pepper: Pepper) -> NewKey:
    """A fresh token."""
    return pepper.new_key(PREFIX)


def note_call(connection: Connection, row: TriggerRow, *, now_ms: int) -> None:
    """The trigger's link was called."""
    update_last_call(connection, row.id, now_ms=now_ms)


_OF_TARGET: Final = (run_trigger.c.runs == bindparam("of_runs")) & (
    run_trigger.c.owner_id == bindparam("of_owner")
)
_ONE: Final = select(run_trigger).where(_OF_TARGET)
_FORGET: Final = sqlalchemy_delete(run_trigger).where(_OF_TARGET)
_CALLED: Final = update(run_trigger).where(run_trigger.c.id == bindparam("trigger_id"))


def add(
    connection: Connection, account_id: str, target: Target, *, key: NewKey, now_ms: int
) -> None:
    """Store a trigger, by its token's hash."""
    row = {
        "account_id": account_id,
        "runs": target.runs.value,
        "owner_id": target.owner_id,
        "hash": key.digest,
        "masked": key.masked,
        "created_ms": now_ms,
    }
    connection.execute(insert(run_trigger), row)


def select_link(connection: Connection, target: Target) -> TriggerRow | None:
    """The trigger of a check. None: it has none."""
    row = connection.execute(_ONE, _values(target)).first()
    return None if row is None else _trigger(row)


def delete_link(connection: Connection, target: Target) -> bool:
    """Forget the trigger; false when there is none."""
    return connection.execute(_FORGET, _values(target)).rowcount == 1


def of_token(connection: Connection, target: Target, digest: bytes) -> TriggerRow | None:
    """The trigger of this target and no other that this token opens. None: there is none."""
    query = _ONE.where(run_trigger.c.hash == bindparam("digest"))
    row = connection.execute(query, {**_values(target), "digest": digest}).first()
    return None if row is None else _trigger(row)


def update_last_call(connection: Connection, trigger_id: int, *, now_ms: int) -> None:
    """Somebody called the trigger's link."""
    connection.execute(_CALLED.values(called_ms=now_ms), {"trigger_id": trigger_id})


def _values(target: Target) -> dict[str, str]:
    return {"of_runs": target.runs.value, "of_owner": target.owner_id}


def _trigger(row: Row[Any]) -> TriggerRow:
    return TriggerRow(
        id=row.id,
        account_id=row.account_id,
        masked=row.masked,
        created_ms=row.created_ms,
        called_ms=row.called_ms,
    )
