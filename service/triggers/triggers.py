"""Triggers, stored and found; each function is part of the caller's transaction.

Who may ask for a target is known before: routes find it in the caller's account first.
"""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, insert, select, update
from sqlalchemy import delete as delete_from

from service.accounts.keys import NewKey, Pepper, digest_key
from service.db.tables.runs import run_trigger
from service.http.errors import NotFoundError, UnreadableError
from service.triggers.model import PREFIX, Runs, Target, TriggerRow
from service.vault.encryption import DecryptionError, Place, Scope, Vault
from service.vault.reencrypt import EncryptedTable

_OF_TARGET: Final = (run_trigger.c.runs == bindparam("of_runs")) & (
    run_trigger.c.owner_id == bindparam("of_owner")
)
_ONE: Final = select(run_trigger).where(_OF_TARGET)
_ONE_BY_TOKEN: Final = _ONE.where(run_trigger.c.hash == bindparam("digest"))
_REMOVE: Final = delete_from(run_trigger).where(_OF_TARGET)
_CALLED: Final = update(run_trigger).where(run_trigger.c.id == bindparam("trigger_id"))


def new_token(pepper: Pepper) -> NewKey:
    """A fresh token."""
    return pepper.new_key(PREFIX)


def create(connection: Connection, scope: Scope, target: Target, *, key: NewKey) -> TriggerRow:
    """Make the target's trigger with this token; one that it had opens nothing any more."""
    forget(connection, target)
    row = {
        "account_id": scope.account_id,
        "runs": target.runs.value,
        "owner_id": target.owner_id,
        "hash": key.digest,
        "masked": key.masked,
        "token": scope.vault.encrypt(key.raw, _place(scope.account_id, target)),
        "created_ms": scope.now_ms,
    }
    connection.execute(insert(run_trigger), row)
    return find(connection, target)


def find(connection: Connection, target: Target) -> TriggerRow:
    """The target's trigger.

    Raises:
        NotFoundError: it has none.
    """
    row = connection.execute(_ONE, _target_values(target)).first()
    if row is None:
        raise NotFoundError(f"The {target.runs} {target.owner_id} has no trigger.")
    return _read(row)


def reveal_token(row: TriggerRow, target: Target, vault: Vault) -> str:
    """The whole token; masked where an older release made it, which kept its hash alone.

    Raises:
        UnreadableError: it cannot be decrypted.
    """
    if row.token is None:
        return row.masked
    try:
        return vault.decrypt(row.token, _place(row.account_id, target))
    except DecryptionError as problem:
        raise UnreadableError(
            f"The stored token of the trigger {row.id} cannot be read: {problem}."
            " Create the trigger again, or delete it."
        ) from problem


def find_by_token(
    connection: Connection, target: Target, *, token: str, pepper: Pepper
) -> TriggerRow | None:
    """The trigger of this target, and of no other, that the token opens. None: there is none."""
    values = {**_target_values(target), "digest": pepper.keyed(digest_key(token))}
    row = connection.execute(_ONE_BY_TOKEN, values).first()
    return None if row is None else _read(row)


def delete(connection: Connection, target: Target) -> None:
    """End the target's trigger.

    Raises:
        NotFoundError: it has none.
    """
    find(connection, target)
    forget(connection, target)


def forget(connection: Connection, target: Target) -> None:
    """End the target's trigger if it has one, as when the target itself is deleted."""
    connection.execute(_REMOVE, _target_values(target))


def note_call(connection: Connection, row: TriggerRow, *, now_ms: int) -> None:
    """Store when the trigger's link was last called."""
    connection.execute(_CALLED.values(called_ms=now_ms), {"trigger_id": row.id})


def _place(account_id: str, target: Target) -> Place:
    return ("run_trigger", account_id, target.runs.value, target.owner_id)


def _reencrypt(row: Row[Any], vault: Vault) -> Mapping[str, Any]:
    place = _place(row.account_id, Target(Runs(row.runs), row.owner_id))
    return {"token": vault.encrypt(vault.decrypt(row.token, place), place)}


ENCRYPTED: Final = EncryptedTable(
    column=run_trigger.c.token,
    unreadable="triggers.unreadable",
    reencrypt=_reencrypt,
    describe=lambda row: {"trigger_id": str(row.id)},
)


def _target_values(target: Target) -> dict[str, str]:
    return {"of_runs": target.runs.value, "of_owner": target.owner_id}


def _read(row: Row[Any]) -> TriggerRow:
    return TriggerRow(
        id=row.id,
        account_id=row.account_id,
        masked=row.masked,
        token=row.token,
        created_ms=row.created_ms,
        called_ms=row.called_ms,
    )
