"""Deleting private locations and keys, and what that means for runs."""

from sqlalchemy import Connection

from service.agents import actions as agents
from service.checks import actions as checks
from service.db.engine import announce
from service.groups import actions as groups
from service.http.errors import ConflictError
from service.jobs import endings as jobs
from service.locations import actions, store
from service.locations.actions import find
from service.locations.model import LocationKeyEnded


def delete(connection: Connection, account_id: str, location_id: str, *, now_ms: int) -> None:
    """Forget a location; its keys end at once, and so do runs from before a check moved away.

    Raises:
        NotFoundError: the account has none with this id.
        ConflictError: checks run there, or a group gives it to its checks.
    """
    row = find(connection, account_id, location_id)
    uses, names = checks.users_of(connection, location_id)
    if uses:
        shown = ", ".join(names) + (" and others" if uses > len(names) else "")
        raise ConflictError(
            f"The private location {row.slug_name} is used by {uses} checks ({shown});"
            " change or delete them first."
        )
    if of_groups := groups.users_of_location(connection, account_id, row.slug_name):
        raise ConflictError(
            f"The private location {row.slug_name} is one of the check group {of_groups[0]};"
            " change that first."
        )
    jobs.end_at(connection, location_id, now_ms=now_ms)
    for key in store.good_keys(connection, [location_id]):
        announce(connection, LocationKeyEnded(key_id=key.id, location_id=location_id))
    store.delete_location(connection, location_id)


def end_key(
    connection: Connection, account_id: str, location_id: str, *, key_id: str, now_ms: int
) -> None:
    """End a key: its agents are refused from the commit on, and others can claim what they held.

    Raises:
        NotFoundError: the location has no such key.
    """
    actions.end_key(connection, account_id, location_id, key_id=key_id, now_ms=now_ms)
    let_out = agents.with_key(connection, location_id, key_id)
    jobs.release_held_by(connection, location_id, let_out, now_ms=now_ms)
