"""What happens to private locations and their keys: one transaction per function."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from sqlalchemy import Connection

from service.accounts.keys import LOCATION_PREFIX, NewKey, Pepper
from service.db.engine import announce
from service.db.ids import new_id
from service.http.errors import ConflictError, NotFoundError
from service.locations import store
from service.locations.model import (
    MAX_ACTIVE_KEYS,
    KeyDigest,
    KeyRow,
    LocationChange,
    LocationKeyEnded,
    LocationRow,
    LocationWrite,
    NewLocation,
    QueueSample,
)
from service.locations.secrets import decrypt, encrypt
from service.vault.encryption import Scope, Vault
from service.vault.masked_values import restore_proxy


def create_first(
    connection: Connection, account_id: str, *, slug: str, key: NewKey, now_ms: int
) -> str:
    """The location that every new account begins with; its id."""
    body = LocationWrite.model_validate({"name": f"{slug.capitalize()} location", "slugName": slug})
    return _create(connection, _build_row(account_id, body, now_ms=now_ms), key).id


def create(
    connection: Connection, scope: Scope, *, body: LocationWrite, pepper: Pepper
) -> NewLocation:
    """Make a location and its first key.

    Raises:
        ConflictError: the account has a location with this slug.
    """
    row = _build_row(scope.account_id, body, now_ms=scope.now_ms)
    key = pepper.new_key(LOCATION_PREFIX)
    proxy_url = restore_proxy(body.proxy_url, None)
    return _create(connection, _add_proxy(row, proxy_url, scope.vault), key)


def create_without_key(connection: Connection, scope: Scope, body: LocationWrite) -> str:
    """Make a location that no agent can run for before somebody makes a key; its id.

    Raises:
        ConflictError: the account has a location with this slug.
    """
    row = _build_row(scope.account_id, body, now_ms=scope.now_ms)
    _insert(connection, _add_proxy(row, restore_proxy(body.proxy_url, None), scope.vault))
    return row.id


def _build_row(account_id: str, body: LocationWrite, *, now_ms: int) -> LocationRow:
    """What was sent, but for its proxy."""
    return LocationRow(
        id=new_id(now_ms),
        account_id=account_id,
        name=body.name,
        slug_name=body.slug_name,
        icon=body.icon,
        created_ms=now_ms,
    )


def _add_proxy(row: LocationRow, proxy_url: str | None, vault: Vault) -> LocationRow:
    columns = encrypt(proxy_url, vault, account_id=row.account_id, location_id=row.id)
    return replace(row, **columns)


def _insert(connection: Connection, row: LocationRow) -> None:
    slug = row.slug_name
    if any(one.slug_name == slug for one in store.list_all(connection, row.account_id)):
        raise ConflictError(f"A private location {slug} already exists; use another slugName.")
    store.insert_location(connection, row)


def _create(connection: Connection, row: LocationRow, key: NewKey) -> NewLocation:
    _insert(connection, row)
    key_id = _add_key(connection, row.id, key, now_ms=row.created_ms)
    return NewLocation(id=row.id, key_id=key_id, raw_key=key.raw, masked_key=key.masked)


def list_all(connection: Connection, account_id: str) -> tuple[LocationRow, ...]:
    """All locations of an account, oldest first."""
    return store.list_all(connection, account_id)


def list_ids_by_slug(connection: Connection, account_id: str) -> dict[str, str]:
    """How checks of an account name its locations, oldest first."""
    return {row.slug_name: row.id for row in store.list_all(connection, account_id)}


def list_all_ids(connection: Connection) -> list[str]:
    """Every location of every account."""
    return [row.id for row in store.list_of_all_accounts(connection)]


def list_slugs(connection: Connection, account_id: str) -> dict[str, str]:
    """The slug of each location of an account, by id."""
    return {row.id: row.slug_name for row in store.list_all(connection, account_id)}


def find_in_any_account(connection: Connection, location_id: str) -> LocationRow | None:
    """A location, whosever it is. None: it is gone."""
    return store.find_in_any_account(connection, location_id)


def find_account(connection: Connection, location_id: str) -> str | None:
    """Whose a location is. None: it is gone."""
    return store.find_account(connection, location_id)


def list_outages(connection: Connection) -> dict[str, int]:
    """The locations that are unavailable, and since when; few, if any."""
    return store.list_outages(connection)


def list_samples(
    connection: Connection, account_id: str, location_id: str, *, from_ms: int, until_ms: int
) -> tuple[QueueSample, ...]:
    """How a location's queue fared in a window, both ends included, oldest first.

    Raises:
        NotFoundError: the account has none with this id.
    """
    find(connection, account_id, location_id)
    return store.list_samples(connection, location_id, from_ms=from_ms, until_ms=until_ms)


def rehash_keys(connection: Connection, anew: Callable[[bytes], bytes]) -> None:
    """Store the keys of all locations anew."""
    store.rehash(connection, anew)


def find_key(connection: Connection, digest: bytes) -> KeyDigest | None:
    """Whom the key that is stored as this speaks for. None: it is unknown or ended."""
    return store.find_key(connection, digest)


def list_keys(connection: Connection, location_ids: Sequence[str]) -> tuple[KeyRow, ...]:
    """The keys of these locations that have not ended, oldest first."""
    return store.list_keys(connection, location_ids)


def find(connection: Connection, account_id: str, location_id: str) -> LocationRow:
    """A location of the account.

    Raises:
        NotFoundError: the account has none with this id.
    """
    row = store.find(connection, account_id, location_id)
    if row is None:
        raise NotFoundError(f"There is no private location {location_id}.")
    return row


def change(connection: Connection, scope: Scope, location_id: str, body: LocationChange) -> None:
    """Change name, icon and proxy."""
    row = find(connection, scope.account_id, location_id)
    stored = partial(_decrypt_proxy, row, scope.vault)
    proxy_url = restore_proxy(body.proxy_url, stored)
    changed = replace(row, name=body.name, icon=body.icon, updated_ms=scope.now_ms)
    store.update_location(connection, _add_proxy(changed, proxy_url, scope.vault))


def _decrypt_proxy(row: LocationRow, vault: Vault) -> str | None:
    return decrypt(row, vault).proxy_url


def create_key(
    connection: Connection, scope: Scope, location_id: str, *, pepper: Pepper
) -> tuple[str, NewKey]:
    """Make a further key for a location: its id, and the key.

    Raises:
        ConflictError: the location has two keys already.
    """
    row = find(connection, scope.account_id, location_id)
    if len(store.list_keys(connection, [location_id])) >= MAX_ACTIVE_KEYS:
        raise ConflictError(
            f"The private location {row.slug_name} has {MAX_ACTIVE_KEYS} keys, the maximum; delete"
            " one first."
        )
    key = pepper.new_key(LOCATION_PREFIX)
    return _add_key(connection, location_id, key, now_ms=scope.now_ms), key


def end_key(connection: Connection, scope: Scope, location_id: str, key_id: str) -> None:
    """End a key: agents that use it are refused from the moment of the commit.

    Raises:
        NotFoundError: the location has no such key.
    """
    find(connection, scope.account_id, location_id)
    if not store.revoke_key(connection, key_id, location_id=location_id, now_ms=scope.now_ms):
        raise NotFoundError(f"There is no key {key_id} at this private location.")
    announce(connection, LocationKeyEnded(key_id=key_id, location_id=location_id))


def _add_key(connection: Connection, location_id: str, key: NewKey, *, now_ms: int) -> str:
    key_id = new_id(now_ms)
    store.insert_key(connection, key, key_id=key_id, location_id=location_id, now_ms=now_ms)
    return key_id
