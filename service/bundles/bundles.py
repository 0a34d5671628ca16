"""Code bundles and snapshots: kept, found, removed."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from service.bundles.files import BundleFile, BundleFiles
from service.bundles.model import BundleRow
from service.checks import actions as checks
from service.clock import Clock
from service.db.engine import Database
from service.db.tables.job_inputs import code_bundle
from service.http.errors import NotFoundError

_SAME: Final = (code_bundle.c.account_id == bindparam("account")) & (
    code_bundle.c.sha256 == bindparam("digest")
)
_COLUMNS: Final = (
    code_bundle.c.sha256,
    code_bundle.c.size_bytes,
    code_bundle.c.created_ms,
    code_bundle.c.is_snapshot,
)
_ANY: Final = select(*_COLUMNS).where(_SAME)
_ONE: Final = _ANY.where(code_bundle.c.is_snapshot.is_(False))
_NEWEST: Final = (
    select(*_COLUMNS)
    .where(code_bundle.c.account_id == bindparam("account"), code_bundle.c.is_snapshot.is_(False))
    .order_by(code_bundle.c.created_ms.desc(), code_bundle.c.sha256)
    .limit(bindparam("limit"))
)
_TOUCH: Final = update(code_bundle).where(_SAME).values(created_ms=bindparam("now_ms"))
_NAMES: Final = tuple(column.name for column in _COLUMNS)
_ALL: Final = select(code_bundle.c.account_id, *_COLUMNS)
_REMOVE: Final = delete(code_bundle).where(_SAME)

KEPT_MS: Final = 24 * 3600 * 1000
"""How long after its upload a bundle or snapshot is kept that no check names."""


def find(connection: Connection, account_id: str, sha256: str) -> BundleRow:
    """A bundle of the account.

    Raises:
        NotFoundError: it has not been sent.
    """
    row = connection.execute(_ONE, {"account": account_id, "digest": sha256}).first()
    if row is None:
        raise NotFoundError("There is no code bundle with this SHA-256; send it with PUT.")
    return BundleRow(**row._mapping)  # noqa: SLF001 - the face of a row


def find_kept(connection: Connection, account_id: str, sha256: str) -> BundleRow | None:
    """A snapshot or a bundle of the account. None: it has not been sent."""
    row = connection.execute(_ANY, {"account": account_id, "digest": sha256}).first()
    return None if row is None else BundleRow(**row._mapping)  # noqa: SLF001 - the face of a row


def list_newest(connection: Connection, account_id: str, *, limit: int) -> Sequence[BundleRow]:
    """The bundles that the account has sent, the last one first."""
    values = {"account": account_id, "limit": limit}
    return [
        BundleRow(**row._mapping)  # noqa: SLF001 - the face of a row
        for row in connection.execute(_NEWEST, values)
    ]


def is_there(connection: Connection, account_id: str, sha256: str) -> bool:
    """Whether the account has sent this bundle."""
    values = {"account": account_id, "digest": sha256}
    return connection.execute(_ONE, values).first() is not None


def put(connection: Connection, account_id: str, row: BundleRow) -> None:
    """Store a bundle whose file is in its place, or note that it was sent again.

    Bytes that were sent as both are a bundle, which may be compared with as well.
    """
    values = {"account": account_id, "digest": row.sha256, "now_ms": row.created_ms}
    touch = _TOUCH if row.is_snapshot else _TOUCH.values(is_snapshot=False)
    if connection.execute(touch, values).rowcount == 0:
        connection.execute(insert(code_bundle), {"account_id": account_id, **asdict(row)})


def list_of_all_accounts(connection: Connection) -> Sequence[tuple[str, BundleRow]]:
    """Every bundle and snapshot, with the account whose it is."""
    return [
        (account_id, BundleRow(**dict(zip(_NAMES, values, strict=True))))
        for account_id, *values in connection.execute(_ALL)
    ]


def remove(connection: Connection, account_id: str, sha256: str) -> None:
    """Forget a bundle."""
    connection.execute(_REMOVE, {"account": account_id, "digest": sha256})


@dataclass(frozen=True, slots=True)
class BundleSweep:
    """Looks through the bundles and snapshots of all accounts."""

    files: BundleFiles
    clock: Clock

    async def sweep(self, database: Database) -> int:
        """Forget the old ones that no check names; gives how many files went.

        First it is noted that they are gone: of what happens in between, a death included, only
        files can be left that nobody knows of, and they go the next time.
        """
        async with self.files.one_at_a_time:
            there = await self.files.list_stored()
            gone = await database.write(partial(self._forget, there=there))
            removing = asyncio.create_task(self.files.remove_stored(gone))
            try:
                await asyncio.shield(removing)
            finally:
                await removing  # a service that stops: nothing may go once others may come
        return len(gone)

    def _forget(
        self, connection: Connection, there: Mapping[BundleFile, float]
    ) -> dict[BundleFile, float]:
        """The files that nobody knows of from now on, and when they were stored.

        What is noted without its file is forgotten too, so that it is sent again; a power cut may
        have undone what an earlier sweep noted. In a bucket, another process may be between the
        file and the note: there both are left alone until they are settled.
        """
        now_ms = self.clock.now_ms(connection)
        since_ms, settled_ms = now_ms - KEPT_MS, now_ms - self.files.settled_ms
        used = checks.list_bundles_in_use(connection) | checks.list_snapshots_in_use(connection)
        known = set()
        for account_id, row in list_of_all_accounts(connection):
            kept = BundleFile(account_id, row.sha256)
            is_there = kept in there or row.created_ms > settled_ms
            if row.sha256 in used or (row.created_ms >= since_ms and is_there):
                known.add(kept)
            else:
                remove(connection, account_id, row.sha256)
        return {
            one: stored_ms
            for one, stored_ms in there.items()
            if one not in known and stored_ms <= settled_ms
        }
