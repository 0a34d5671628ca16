"""Removes private locations, and keys of them that agents may use."""

from sqlalchemy import Connection

from service.agents import actions as agents
from service.checks import actions as checks
from service.db.engine import announce
from service.groups import actions as groups
from service.http.errors import ConflictError
from service.jobs import settle as jobs
from service.locations import actions, store
from service.locations.actions import find
from service.locations.model import LocationKeyEnded
from service.vault.encryption import Scope


def delete(connection: Connection, scope: Scope, location_id: str) -> None:
    """Forget a location; its keys end at once, and so do runs from before a check moved away.

    Raises:
        NotFoundError: the account has none with this id.
        ConflictError: checks run there, or a group gives it to its checks.
    """
    row = find(connection, scope.account_id, location_id)
    uses, names = checks.find_location_users(connection, location_id)
    if uses:
        shown = checks.format_users(uses, names)
        raise ConflictError(
            f"The private location {row.slug_name} is used by {uses} checks ({shown});"
            " change or delete them first."
        )
    if of_groups := groups.find_location_users(connection, scope.account_id, row.slug_name):
        raise ConflictError(
            f"The private location {row.slug_name} is one of the check group {of_groups[0]};"
            " change that first."
        )
    jobs.end_all_at(connection, location_id, now_ms=scope.now_ms)
    for key in store.list_keys(connection, [location_id]):
        announce(connection, LocationKeyEnded(key_id=key.id, location_id=location_id))
    store.delete_location(connection, location_id)


def end_key(connection: Connection, scope: Scope, location_id: str, key_id: str) -> None:
    """End a key: its agents are refused from the commit on, and others can claim what they held.

    Raises:
        NotFoundError: the location has no such key.
    """
    actions.end_key(connection, scope, location_id, key_id)
    let_out = agents.with_key(connection, location_id, key_id)
    jobs.release_held_by(connection, location_id, let_out, now_ms=scope.now_ms)
