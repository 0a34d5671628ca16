"""What everyone asks about groups; each is part of the caller's transaction."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection

from service.alert_channels import actions as alert_channels
from service.groups import store
from service.groups.model import GroupRow
from service.http.errors import InvalidError, NotFoundError
from service.variables import actions as variables

_MOST: Final = 1 << 63
_PHASES: Final = ("setupSnippetId", "tearDownSnippetId")


def find(connection: Connection, account_id: str, group_id: int) -> GroupRow:
    """A group of the account.

    Raises:
        NotFoundError: the account has none with this id.
    """
    row = store.find(connection, account_id, group_id)
    if row is None:
        raise NotFoundError(f"There is no check group {group_id}.")
    return row


def find_named(connection: Connection, account_id: str, group_id: int | None) -> GroupRow | None:
    """The group that a check's `groupId` names. None: it names none.

    Raises:
        InvalidError: the account has none with this id.
    """
    if group_id is None:
        return None
    row = store.find(connection, account_id, group_id) if 0 < group_id < _MOST else None
    if row is None:
        raise InvalidError(
            f'"groupId" is {group_id}, and there is no check group with this id.', keys=("groupId",)
        )
    return row


def list_by_id(connection: Connection, account_id: str) -> dict[int, GroupRow]:
    """All groups of an account, by id."""
    return {row.id: row for row in store.list_all(connection, account_id)}


def complete(connection: Connection, rows: Iterable[GroupRow]) -> tuple[GroupRow, ...]:
    """The groups with their own variables and subscriptions, as the API shows them."""
    groups = tuple(rows)
    ids = [group.id for group in groups]
    found = variables.find_of_groups(connection, ids)
    choices = alert_channels.find_of_groups(connection, ids)
    return tuple(
        replace(
            group,
            variables=found.get(str(group.id), ()),
            channels=tuple(choices.get(group.id, ())),
        )
        for group in groups
    )


def find_location_users(connection: Connection, account_id: str, slug: str) -> tuple[str, ...]:
    """The names of the groups that give their checks a location."""
    return tuple(
        row.name
        for row in store.list_all(connection, account_id)
        if slug in (*row.doc["privateLocations"], *row.doc["locations"])
    )


def find_snippet_users(connection: Connection, account_id: str, snippet_id: int) -> tuple[str, ...]:
    """The names of the groups that have a snippet as a phase."""
    return tuple(
        row.name
        for row in store.list_all(connection, account_id)
        if any(row.doc[phase] == snippet_id for phase in _PHASES)
    )
