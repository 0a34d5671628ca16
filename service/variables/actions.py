"""What everyone asks about variables; each is part of the caller's transaction.

Checks and groups keep theirs here: `service.variables.changes` has `replace` and `forget`.
"""

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection

from service.http.errors import NotFoundError
from service.variables import store
from service.variables.model import Level, Owner, VariableRow


def find(connection: Connection, account_id: str, key: str) -> VariableRow:
    """A variable of the account itself.

    Raises:
        NotFoundError: the account has none of this key.
    """
    row = store.find(connection, Owner.account(account_id), key)
    if row is None:
        raise NotFoundError(f"There is no variable {key}.")
    return row


def page(
    connection: Connection, account_id: str, *, limit: int, offset: int
) -> tuple[VariableRow, ...]:
    """A page of the account's own variables, by key."""
    return store.page(connection, Owner.account(account_id), limit=limit, offset=offset)


def of(connection: Connection, owner: Owner) -> tuple[VariableRow, ...]:
    """The variables of a check or a group, in the order in which they were sent."""
    return store.of(connection, owner)


def of_checks(connection: Connection, check_ids: Iterable[str]) -> Mapping[str, list[VariableRow]]:
    """The variables of several checks, by check; one without any is left out."""
    return store.of_some(connection, Level.CHECK, check_ids)


def of_groups(connection: Connection, group_ids: Iterable[int]) -> Mapping[str, list[VariableRow]]:
    """The same of groups, by their ids as text."""
    return store.of_some(connection, Level.GROUP, map(str, group_ids))
