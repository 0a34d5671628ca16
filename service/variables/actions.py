"""What other features ask of variables; each function is part of the caller's transaction.

Checks and groups keep their own variables here, by `replace` and `forget`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from service.http.errors import ConflictError, InvalidError, NotFoundError
from service.variables import store
from service.variables.model import Level, Owner, VariableRow
from service.variables.rules import keeping_problem, together_problem
from service.variables.schemas import (
    EnvironmentVariable,
    VariableChange,
    VariableValue,
    VariableWrite,
)
from service.vault.encryption import OVERHEAD_BYTES, DecryptionError, Scope, Vault
from service.vault.texts import HIDDEN


def find(connection: Connection, account_id: str, key: str) -> VariableRow:
    """A variable of the account itself.

    Raises:
        NotFoundError: the account has none of this key.
    """
    row = store.find(connection, Owner.account(account_id), key)
    if row is None:
        raise NotFoundError(f"There is no variable {key}.")
    return row


def find_of_checks(
    connection: Connection, check_ids: Iterable[str]
) -> Mapping[str, list[VariableRow]]:
    """The variables of several checks, by check; one without any is left out."""
    return store.find_of_many(connection, Level.CHECK, check_ids)


def find_of_groups(
    connection: Connection, group_ids: Iterable[int]
) -> Mapping[str, list[VariableRow]]:
    """The variables of several groups, by the group's id as text."""
    return store.find_of_many(connection, Level.GROUP, map(str, group_ids))


FIELD: Final = "environmentVariables"


def create(connection: Connection, scope: Scope, body: VariableWrite) -> VariableRow:
    """Set a variable of the account.

    Raises:
        ConflictError: it has one of this key.
        InvalidError: an empty secret, or more than an account may have.
    """
    owner = Owner.account(scope.account_id)
    _require_free(connection, owner, body.key)
    return _put(connection, _VariableWriter(scope.vault, owner).row(body.key, body, before=None))


def replace_one(
    connection: Connection, scope: Scope, key: str, body: VariableChange
) -> VariableRow:
    """Change a variable of the account; a secret whose value is sent empty keeps it.

    Raises:
        NotFoundError: the account has none of this key.
        ConflictError: it is to take a key that another one has.
        InvalidError: an empty secret, one whose value cannot be kept, or more than an account may
            have.
    """
    before = find(connection, scope.account_id, key)
    owner, wanted = before.owner, body.key or key
    if wanted != key:
        _require_free(connection, owner, wanted)
    row = _VariableWriter(scope.vault, owner).row(wanted, body, before=before)
    store.remove(connection, owner, key)
    return _put(connection, row)


def delete(connection: Connection, account_id: str, key: str) -> None:
    """Forget a variable of the account.

    Raises:
        NotFoundError: the account has none of this key.
    """
    if not store.remove(connection, Owner.account(account_id), key):
        raise NotFoundError(f"There is no variable {key}.")


def replace(
    connection: Connection,
    owner: Owner,
    wanted: Sequence[EnvironmentVariable],
    *,
    vault: Vault,
    kept_from: Owner | None = None,
) -> None:
    """Make these the variables of a check or a group; a secret that is sent empty keeps its value.

    A value that is kept where it is stays as it is stored, whether or not it can be read.
    `kept_from`: whose values are kept. None: its own.

    Raises:
        InvalidError: a new secret is empty, the value of one that is kept elsewhere cannot be
            read, or they are more than one owner may have.
    """
    before = {row.key: row for row in store.list_all(connection, kept_from or owner)}
    sealing = _VariableWriter(vault, owner, keeps_unread=True)
    rows = [
        sealing.row(one.key, one, before=before.get(one.key), field=f"{FIELD}[{order}].value")
        for order, one in enumerate(wanted)
    ]
    _require_size(sum(map(_size_bytes, rows)), FIELD)
    if before:
        store.remove_all(connection, owner)
    store.add(connection, rows)


def forget(connection: Connection, owner: Owner) -> None:
    """A check or a group goes, and its variables with it."""
    store.remove_all(connection, owner)


@dataclass(frozen=True, slots=True)
class _VariableWriter:
    vault: Vault
    owner: Owner
    keeps_unread: bool = False
    """Whether a kept value may be one that cannot be read any more."""

    def row(
        self, key: str, sent: VariableValue, *, before: VariableRow | None, field: str = "value"
    ) -> VariableRow:
        """What was sent as it is stored; `before` is what it takes the place of."""
        is_kept = sent.value == HIDDEN or (sent.secret and not sent.value)
        place = self.owner.place(key, secret=sent.secret)
        if is_kept and self.keeps_unread and before is not None and before.place == place:
            encrypted = before.value
        else:
            value = self._kept(sent, before, field) if is_kept else sent.value
            encrypted = self.vault.encrypt(value, place)
        return VariableRow(
            owner=self.owner,
            key=key,
            value=encrypted,
            locked=sent.locked,
            secret=sent.secret,
        )

    def _kept(self, sent: VariableValue, before: VariableRow | None, field: str) -> str:
        was_secret = None if before is None else before.secret
        why_not = keeping_problem(sent.value, secret=sent.secret, was_secret=was_secret)
        if before is None or why_not:
            raise InvalidError(f'"{field}" {why_not}.', keys=(field,))
        try:
            return self.vault.decrypt(before.value, before.place)
        except DecryptionError as problem:
            raise InvalidError(
                f'"{field}" is {sent.value or "empty"}, and its stored value can no longer be read:'
                f" {problem}. Send the value.",
                keys=(field,),
            ) from problem


def _put(connection: Connection, row: VariableRow) -> VariableRow:
    _require_size(store.size_bytes(connection, row.owner) + _size_bytes(row), "value")
    store.add(connection, [row])
    return row


def _size_bytes(row: VariableRow) -> int:
    return len(row.key) + len(row.value) - OVERHEAD_BYTES


def _require_size(size_bytes: int, field: str) -> None:
    if problem := together_problem(size_bytes):
        raise InvalidError(f"These variables would have {problem}.", keys=(field,))


def _require_free(connection: Connection, owner: Owner, key: str) -> None:
    if store.find(connection, owner, key) is not None:
        raise ConflictError(f"A variable {key} already exists; use another key, or PUT.")
