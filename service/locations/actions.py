"""What happens to private locations and their keys: one transaction per function."""

from collections.abc import Callable, Sequence
from dataclasses import replace

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


def create_first(
    connection: Connection, account_id: str, *, slug: str, key: NewKey, now_ms: int
) -> str:
    """The location that every new account begins with; its id."""
    body = LocationWrite.model_validate({"name": slug.capitalize(), "slugName": slug})
    return _create(connection, account_id, body=body, key=key, now_ms=now_ms).id


def create(
    connection: Connection, account_id: str, *, body: LocationWrite, pepper: Pepper, now_ms: int
) -> NewLocation:
    """Make a location and its first key.

    Raises:
        ConflictError: the account has a location with this slug.
    """
    key = pepper.new_key(LOCATION_PREFIX)
    return _create(connection, account_id, body=body, key=key, now_ms=now_ms)


def _create(
    connection: Connection, account_id: str, *, body: LocationWrite, key: NewKey, now_ms: int
) -> NewLocation:
    slug = body.slug_name
    if any(row.slug_name == slug for row in store.of_account(connection, account_id)):
        raise ConflictError(f"There is a private location {slug} already; use another slugName.")
    row = LocationRow(
        id=new_id(now_ms),
        name=body.name,
        slug_name=slug,
        icon=body.icon,
        proxy_url=body.proxy_url,
        created_ms=now_ms,
        updated_ms=None,
    )
    store.insert_location(connection, row, account_id=account_id)
    key_id = _add_key(connection, row.id, key, now_ms=now_ms)
    return NewLocation(id=row.id, key_id=key_id, raw_key=key.raw, masked_key=key.masked)


def of_account(connection: Connection, account_id: str) -> tuple[LocationRow, ...]:
    """All locations of an account, oldest first."""
    return store.of_account(connection, account_id)


def ids_by_slug(connection: Connection, account_id: str) -> dict[str, str]:
    """How checks of an account name its locations, oldest first."""
    return {row.slug_name: row.id for row in store.of_account(connection, account_id)}


def all_ids(connection: Connection) -> list[str]:
    """Every location of every account."""
    return [row.id for row in store.all_locations(connection)]


def slugs(connection: Connection, account_id: str) -> dict[str, str]:
    """The slug of each location of an account, by id."""
    return {row.id: row.slug_name for row in store.of_account(connection, account_id)}


def by_id(connection: Connection, location_id: str) -> LocationRow | None:
    """A location, whosever it is. None: it is gone."""
    return store.by_id(connection, location_id)


def account_of(connection: Connection, location_id: str) -> str | None:
    """Whose a location is. None: it is gone."""
    return store.account_of(connection, location_id)


def outages(connection: Connection) -> dict[str, int]:
    """The locations that are unavailable, and since when; few, if any."""
    return store.outages(connection)


def queue_samples(
    connection: Connection, account_id: str, location_id: str, *, from_ms: int, until_ms: int
) -> tuple[QueueSample, ...]:
    """How a location's queue fared in a window, both ends included, oldest first.

    Raises:
        NotFoundError: the account has none with this id.
    """
    find(connection, account_id, location_id)
    return store.samples(connection, location_id, from_ms=from_ms, until_ms=until_ms)


def rehash_keys(connection: Connection, anew: Callable[[bytes], bytes]) -> None:
    """Store the keys of all locations anew."""
    store.rehash(connection, anew)


def of_key(connection: Connection, digest: bytes) -> KeyDigest | None:
    """Whom the key that is stored as this speaks for. None: it is unknown or ended."""
    return store.good_key(connection, digest)


def keys_of(connection: Connection, location_ids: Sequence[str]) -> tuple[KeyRow, ...]:
    """The keys of these locations that have not ended, oldest first."""
    return store.good_keys(connection, location_ids)


def find(connection: Connection, account_id: str, location_id: str) -> LocationRow:
    """A location of the account.

    Raises:
        NotFoundError: the account has none with this id.
    """
    row = store.find(connection, account_id, location_id)
    if row is None:
        raise NotFoundError(f"There is no private location {location_id}.")
    return row


def change(
    connection: Connection,
    account_id: str,
    location_id: str,
    *,
    body: LocationChange,
    now_ms: int,
) -> None:
    """Change name, icon and proxy."""
    row = find(connection, account_id, location_id)
    changed = replace(
        row, name=body.name, icon=body.icon, proxy_url=body.proxy_url, updated_ms=now_ms
    )
    store.update_location(connection, changed)


def create_key(
    connection: Connection, account_id: str, location_id: str, *, pepper: Pepper, now_ms: int
) -> tuple[str, NewKey]:
    """Make a further key for a location: its id, and the key.

    Raises:
        ConflictError: the location has two keys already.
    """
    row = find(connection, account_id, location_id)
    if len(store.good_keys(connection, [location_id])) >= MAX_ACTIVE_KEYS:
        raise ConflictError(
            f"The private location {row.slug_name} has {MAX_ACTIVE_KEYS} keys, which is the most;"
            " delete one first."
        )
    key = pepper.new_key(LOCATION_PREFIX)
    return _add_key(connection, location_id, key, now_ms=now_ms), key


def end_key(
    connection: Connection, account_id: str, location_id: str, *, key_id: str, now_ms: int
) -> None:
    """End a key: agents that use it are refused from the moment of the commit.

    Raises:
        NotFoundError: the location has no such key.
    """
    find(connection, account_id, location_id)
    if not store.revoke_key(connection, key_id, location_id=location_id, now_ms=now_ms):
        raise NotFoundError(f"There is no key {key_id} at this private location.")
    announce(connection, LocationKeyEnded(key_id=key_id, location_id=location_id))


def _add_key(connection: Connection, location_id: str, key: NewKey, *, now_ms: int) -> str:
    key_id = new_id(now_ms)
    store.insert_key(connection, key, key_id=key_id, location_id=location_id, now_ms=now_ms)
    return key_id
