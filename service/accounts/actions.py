"""What happens to accounts and their keys: one transaction per function."""

import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from service.accounts import store
from service.accounts.keys import LOCATION_PREFIX, SERVICE_PREFIX, USER_PREFIX, NewKey, Pepper
from service.accounts.model import (
    AccountRow,
    ApiKeyEnded,
    Caller,
    FirstSecrets,
    GivenKeys,
    KeyRow,
    Role,
    WrongPepperError,
)
from service.db.engine import announce
from service.db.ids import new_id
from service.http.errors import NotFoundError
from service.locations import actions as locations

FIRST_LOCATION: Final = "default"
NONE_GIVEN: Final = GivenKeys()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRequest:
    """What kind of API key is to be made."""

    name: str
    role: Role = Role.READ_WRITE
    of_user: bool = True
    """False: of a program (`sv_`)."""


def require_pepper(connection: Connection, pepper: Pepper) -> bool:
    """Store keys with this pepper from now on; those of an earlier version are stored anew.

    True: it was in use before.

    Raises:
        WrongPepperError: they are stored with another one.
    """
    mark = store.find_pepper_mark(connection)
    if mark is None:
        store.rehash(connection, pepper.keyed)
        locations.rehash_keys(connection, pepper.keyed)
        store.insert_pepper_mark(connection, pepper.mark())
        return False
    if not hmac.compare_digest(mark, pepper.mark()):
        raise WrongPepperError
    return True


def first_start(
    connection: Connection, pepper: Pepper, *, now_ms: int, given: GivenKeys = NONE_GIVEN
) -> FirstSecrets | None:
    """Make the account, its API key and a private location with a key.

    The secrets are returned here and can never be had again. None: there is an account already.
    """
    if store.find_first_account(connection) is not None:
        return None
    account_id = _add_account(connection, name="Default", now_ms=now_ms)
    api_key = _take_or_make_key(pepper, given.api_key, USER_PREFIX)
    _add_key(connection, account_id, api_key, wish=KeyRequest(name="first start"), now_ms=now_ms)
    location_key = _take_or_make_key(pepper, given.location_key, LOCATION_PREFIX)
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


def list_accounts(connection: Connection) -> tuple[AccountRow, ...]:
    """Every account of this service, oldest first."""
    return store.list_accounts(connection)


def find_account(connection: Connection, account_id: str) -> AccountRow:
    """An account.

    Raises:
        NotFoundError: there is none with this id.
    """
    row = store.find_account(connection, account_id)
    if row is None:
        raise NotFoundError(f"There is no account {account_id}.")
    return row


def find_alert_settings(connection: Connection, account_id: str) -> Mapping[str, Any] | None:
    """The alert settings of checks without their own. None: nobody has chosen any."""
    return store.find_alert_settings(connection, account_id)


def change_alert_settings(
    connection: Connection, account_id: str, settings: Mapping[str, Any]
) -> None:
    """Make these the alert settings of checks without their own."""
    store.update_alert_settings(connection, account_id, settings)


def create_account(connection: Connection, *, name: str, now_ms: int) -> AccountRow:
    """Make a further account, which shares nothing with the others."""
    return find_account(connection, _add_account(connection, name=name, now_ms=now_ms))


def create_key(
    connection: Connection, pepper: Pepper, account_id: str, *, wish: KeyRequest, now_ms: int
) -> tuple[str, NewKey]:
    """Make an API key: its id, and the key, whose raw form exists only here.

    Raises:
        NotFoundError: there is no such account.
    """
    find_account(connection, account_id)
    key = pepper.new_key(USER_PREFIX if wish.of_user else SERVICE_PREFIX)
    return _add_key(connection, account_id, key, wish=wish, now_ms=now_ms), key


def list_keys(connection: Connection, *, account_id: str | None = None) -> tuple[KeyRow, ...]:
    """API keys, ended ones as well, oldest first. Without an account: of all."""
    return store.list_keys(connection, account_id)


def find_good_key(connection: Connection, key_id: str) -> KeyRow | None:
    """An API key. None: there is none with this id, or it has ended."""
    return store.find_good_key(connection, key_id)


def list_good_keys(connection: Connection, key_ids: Collection[str]) -> frozenset[str]:
    """Those of these API keys that have not ended."""
    return store.list_good_keys(connection, key_ids)


def find_name(connection: Connection, caller: Caller) -> str:
    """What the caller's key is called."""
    key = store.find_good_key(connection, caller.key_id) if caller.key_id else None
    return key.name if key else "API key"


def note_use(connection: Connection, key_ids: Collection[str], *, now_ms: int) -> int:
    """Remember that API keys were used just now; how many."""
    if key_ids:
        store.update_used(connection, key_ids, now_ms=now_ms)
    return len(key_ids)


def end_key(connection: Connection, key_id: str, *, account_id: str, now_ms: int) -> bool:
    """End an API key: refused from the moment of the commit. False: there is no such key."""
    ended = store.revoke(connection, key_id, account_id=account_id, now_ms=now_ms)
    if ended:
        announce(connection, ApiKeyEnded(key_id))
    return ended


def _take_or_make_key(pepper: Pepper, given: str | None, prefix: str) -> NewKey:
    return pepper.new_key(prefix) if given is None else pepper.as_key(given)


def _add_account(connection: Connection, *, name: str, now_ms: int) -> str:
    account_id = new_id(now_ms)
    store.insert_account(connection, account_id, name=name, now_ms=now_ms)
    return account_id


def _add_key(
    connection: Connection, account_id: str, key: NewKey, *, wish: KeyRequest, now_ms: int
) -> str:
    key_id = new_id(now_ms)
    caller = Caller(account_id=account_id, key_id=key_id, role=wish.role)
    store.insert_api_key(connection, key, caller, name=wish.name, now_ms=now_ms)
    return key_id
