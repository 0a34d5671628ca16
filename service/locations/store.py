"""SQL of private locations and their keys."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from service.accounts.keys import NewKey
from service.db.tables.locations import (
    location_key,
    location_outage,
    location_sample,
    private_location,
)
from service.locations.model import KeyDigest, KeyRow, LocationRow, QueueSample

_OF_ACCOUNT: Final = (
    select(private_location)
    .where(private_location.c.account_id == bindparam("account_id"))
    .order_by(private_location.c.created_ms, private_location.c.id)
)
_ONE: Final = select(private_location).where(
    private_location.c.account_id == bindparam("account_id"),
    private_location.c.id == bindparam("location_id"),
)
_KEYS: Final = (
    select(location_key)
    .where(
        location_key.c.location_id.in_(bindparam("location_ids", expanding=True)),
        location_key.c.revoked_ms.is_(None),
    )
    .order_by(location_key.c.created_ms, location_key.c.id)
)
_REVOKE: Final = (
    update(location_key)
    .where(
        location_key.c.id == bindparam("key_id"),
        location_key.c.location_id == bindparam("of_location"),
        location_key.c.revoked_ms.is_(None),
    )
    .values(revoked_ms=bindparam("now_ms"))
)
_BY_ID: Final = select(private_location).where(private_location.c.id == bindparam("location_id"))
_ACCOUNT: Final = select(private_location.c.account_id).where(
    private_location.c.id == bindparam("location_id")
)
_BY_DIGEST: Final = select(
    location_key.c.id, location_key.c.hash, location_key.c.location_id
).where(location_key.c.hash == bindparam("digest"), location_key.c.revoked_ms.is_(None))
_OUTAGES: Final = select(location_outage)
_END_OUTAGE: Final = delete(location_outage).where(
    location_outage.c.location_id == bindparam("location")
)
_MAY_CHANGE: Final = ("name", "icon", "proxy_url", "sealed_proxy_url", "updated_ms")
SECRETS: Final = private_location.c.sealed_proxy_url
_NEWEST_SAMPLE: Final = select(func.max(location_sample.c.at_ms))
_FORGET_SAMPLES: Final = delete(location_sample).where(
    (location_sample.c.at_ms < bindparam("before_ms"))
    | (location_sample.c.at_ms >= bindparam("from_ms"))
)
_SAMPLES: Final = (
    select(location_sample)
    .where(
        location_sample.c.location_id == bindparam("location"),
        location_sample.c.at_ms >= bindparam("from_ms"),
        location_sample.c.at_ms <= bindparam("until_ms"),
    )
    .order_by(location_sample.c.at_ms)
)


def list_all(connection: Connection, account_id: str) -> tuple[LocationRow, ...]:
    """All locations of an account, oldest first."""
    return tuple(map(read, connection.execute(_OF_ACCOUNT, {"account_id": account_id})))


def find(connection: Connection, account_id: str, location_id: str) -> LocationRow | None:
    """One location. None: the account has none with this id."""
    values = {"account_id": account_id, "location_id": location_id}
    row = connection.execute(_ONE, values).first()
    return None if row is None else read(row)


def read(row: Row[Any]) -> LocationRow:
    """A location of a row."""
    return LocationRow(**{name: getattr(row, name) for name in LocationRow.__dataclass_fields__})


def insert_location(connection: Connection, row: LocationRow) -> None:
    """Store a location."""
    values = {name: getattr(row, name) for name in LocationRow.__dataclass_fields__}
    connection.execute(insert(private_location), values)


def update_location(connection: Connection, row: LocationRow) -> None:
    """Store what may change of a location."""
    change = update(private_location).where(private_location.c.id == row.id)
    values = {name: getattr(row, name) for name in _MAY_CHANGE}
    connection.execute(change.values(**values))


def delete_location(connection: Connection, location_id: str) -> None:
    """Forget a location; its keys and its agents go with it, by their foreign keys."""
    connection.execute(delete(private_location).where(private_location.c.id == location_id))


def find_in_any_account(connection: Connection, location_id: str) -> LocationRow | None:
    """A location, whosever it is. None: it is gone."""
    row = connection.execute(_BY_ID, {"location_id": location_id}).first()
    return None if row is None else read(row)


def find_account(connection: Connection, location_id: str) -> str | None:
    """Whose a location is. None: it is gone."""
    return connection.execute(_ACCOUNT, {"location_id": location_id}).scalar_one_or_none()


def find_key(connection: Connection, digest: bytes) -> KeyDigest | None:
    """The key with this digest. None: it is unknown or ended."""
    row = connection.execute(_BY_DIGEST, {"digest": digest}).one_or_none()
    return KeyDigest(id=row.id, digest=row.hash, location_id=row.location_id) if row else None


def list_keys(connection: Connection, location_ids: Sequence[str]) -> tuple[KeyRow, ...]:
    """The keys of these locations that have not ended, oldest first."""
    rows = connection.execute(_KEYS, {"location_ids": list(location_ids)})
    return tuple(
        KeyRow(id=row.id, location_id=row.location_id, masked=row.masked, created_ms=row.created_ms)
        for row in rows
    )


def insert_key(
    connection: Connection, key: NewKey, *, key_id: str, location_id: str, now_ms: int
) -> None:
    """Store a key's digest."""
    row = {
        "id": key_id,
        "location_id": location_id,
        "hash": key.digest,
        "masked": key.masked,
        "created_ms": now_ms,
    }
    connection.execute(insert(location_key), row)


def rehash(connection: Connection, anew: Callable[[bytes], bytes]) -> None:
    """Store every key anew."""
    for row in connection.execute(select(location_key.c.id, location_key.c.hash)).all():
        change = update(location_key).where(location_key.c.id == row.id)
        connection.execute(change.values(hash=anew(row.hash)))


def revoke_key(connection: Connection, key_id: str, *, location_id: str, now_ms: int) -> bool:
    """End a key; false when the location has no such good key."""
    values = {"key_id": key_id, "of_location": location_id, "now_ms": now_ms}
    return connection.execute(_REVOKE, values).rowcount == 1


def list_of_all_accounts(connection: Connection) -> tuple[LocationRow, ...]:
    """Every location of every account."""
    return tuple(map(read, connection.execute(select(private_location))))


def list_outages(connection: Connection) -> dict[str, int]:
    """The locations that are unavailable, and since when."""
    return {row.location_id: row.since_ms for row in connection.execute(_OUTAGES)}


def begin_outage(connection: Connection, location_id: str, *, now_ms: int) -> None:
    """A location that was available is so no more."""
    connection.execute(insert(location_outage), {"location_id": location_id, "since_ms": now_ms})


def end_outage(connection: Connection, location_id: str) -> None:
    """A location is available again."""
    connection.execute(_END_OUTAGE, {"location": location_id})


def find_newest_sample_ms(connection: Connection) -> int | None:
    """When the queues were last sampled. None: never."""
    newest_ms: int | None = connection.execute(_NEWEST_SAMPLE).scalar_one()
    return newest_ms


def add_samples(connection: Connection, samples: Sequence[QueueSample]) -> None:
    """Store one minute's samples."""
    rows = [
        {name: getattr(one, name) for name in QueueSample.__dataclass_fields__} for one in samples
    ]
    if rows:
        connection.execute(insert(location_sample), rows)


def forget_samples(connection: Connection, *, before_ms: int, from_ms: int) -> None:
    """Forget samples that are old, and those that a clock which was ahead has left."""
    connection.execute(_FORGET_SAMPLES, {"before_ms": before_ms, "from_ms": from_ms})


def list_samples(
    connection: Connection, location_id: str, *, from_ms: int, until_ms: int
) -> tuple[QueueSample, ...]:
    """A location's samples of a window, both ends included, oldest first."""
    values = {"location": location_id, "from_ms": from_ms, "until_ms": until_ms}
    rows = connection.execute(_SAMPLES, values)
    return tuple(QueueSample(*row) for row in rows)
