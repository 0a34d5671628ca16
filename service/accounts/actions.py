"""What happens to accounts and their keys: one transaction per function."""

from typing import Final

from sqlalchemy import Connection

from service.accounts import store
from service.accounts.keys import (
    LOCATION_PREFIX,
    SERVICE_PREFIX,
    USER_PREFIX,
    NewKey,
    as_key,
    new_key,
)
from service.accounts.model import ApiKeyEnded, Caller, FirstSecrets, GivenKeys
from service.db.engine import announce
from service.db.ids import new_id
from service.locations import actions as locations

FIRST_LOCATION: Final = "default"
NONE_GIVEN: Final = GivenKeys()


def first_start(
    connection: Connection, *, now_ms: int, given: GivenKeys = NONE_GIVEN
) -> FirstSecrets | None:
    """Make the account, its API key and a private location with a key.

    The secrets are returned here and can never be had again. None: there is an account already.
    """
    if store.first_account(connection) is not None:
        return None
    account_id = new_id(now_ms)
    store.insert_account(connection, account_id, name="Default", now_ms=now_ms)
    api_key = _given_or_new(given.api_key, USER_PREFIX)
    _add_key(connection, account_id, api_key, name="first start", now_ms=now_ms)
    location_key = _given_or_new(given.location_key, LOCATION_PREFIX)
    location_id = locations.create_first(
        connection, account_id, slug=FIRST_LOCATION, key=location_key, now_ms=now_ms
    )
    return FirstSecrets(
        account_id=account_id,
        api_key=api_key.raw,
        location_id=location_id,
        location_slug=FIRST_LOCATION,
        location_key=location_key.raw,
    )


def create_key(
    connection: Connection, account_id: str, *, name: str, now_ms: int, of_user: bool = True
) -> NewKey:
    """Make an API key; its raw form exists only in the answer."""
    key = new_key(USER_PREFIX if of_user else SERVICE_PREFIX)
    _add_key(connection, account_id, key, name=name, now_ms=now_ms)
    return key


def end_key(connection: Connection, key_id: str, *, account_id: str, now_ms: int) -> bool:
    """End an API key: refused from the moment of the commit. False: there is no such key."""
    ended = store.revoke(connection, key_id, account_id=account_id, now_ms=now_ms)
    if ended:
        announce(connection, ApiKeyEnded(key_id))
    return ended


def _given_or_new(given: str | None, prefix: str) -> NewKey:
    return new_key(prefix) if given is None else as_key(given)


def _add_key(
    connection: Connection, account_id: str, key: NewKey, *, name: str, now_ms: int
) -> None:
    caller = Caller(account_id=account_id, key_id=new_id(now_ms))
    store.insert_api_key(connection, key, caller, name=name, now_ms=now_ms)
