"""SQL of triggers."""

from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from service.accounts.keys import NewKey
from service.db.tables.runs import run_trigger
from service.triggers.model import Target, TriggerRow

_OF_TARGET: Final = (run_trigger.c.runs == bindparam("of_runs")) & (
    run_trigger.c.owner_id == bindparam("of_owner")
)
_ONE: Final = select(run_trigger).where(_OF_TARGET)
_FORGET: Final = delete(run_trigger).where(_OF_TARGET)
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


def find(connection: Connection, target: Target) -> TriggerRow | None:
    """The trigger of a check. None: it has none."""
    row = connection.execute(_ONE, _values(target)).first()
    return None if row is None else _trigger(row)


def forget(connection: Connection, target: Target) -> bool:
    """Forget the trigger; false when there is none."""
    return connection.execute(_FORGET, _values(target)).rowcount == 1


def of_token(connection: Connection, target: Target, digest: bytes) -> TriggerRow | None:
    """The trigger of this target and no other that this token opens. None: there is none."""
    query = _ONE.where(run_trigger.c.hash == bindparam("digest"))
    row = connection.execute(query, {**_values(target), "digest": digest}).first()
    return None if row is None else _trigger(row)


def note_call(connection: Connection, trigger_id: int, *, now_ms: int) -> None:
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
