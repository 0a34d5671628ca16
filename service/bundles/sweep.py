"""Forgetting bundles that no check runs: each change of a suite sends a new one."""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import Connection

from service.bundles import store
from service.bundles.files import BundleFiles, Kept
from service.checks import actions as checks
from service.clock import Clock
from service.db.engine import Database

KEPT_MS: Final = 24 * 3600 * 1000
"""So long after it was sent a check may still be set up with it."""


@dataclass(frozen=True, slots=True)
class BundleSweep:
    """Looks through the bundles of all accounts."""

    files: BundleFiles
    clock: Clock

    async def sweep(self, database: Database) -> int:
        """Forget the old ones that no check runs; gives how many files went.

        First it is noted that they are gone: of what happens in between, a death included, only
        files can be left that nobody knows of, and they go the next time.
        """
        async with self.files.one_at_a_time:
            there = await asyncio.to_thread(self.files.there)
            gone = await database.write(partial(self._forget, there=there))
            removing = asyncio.create_task(asyncio.to_thread(self.files.remove, gone))
            try:
                await asyncio.shield(removing)
            finally:
                await removing  # a service that stops: nothing may go once others may come
        return len(gone)

    def _forget(self, connection: Connection, there: frozenset[Kept]) -> frozenset[Kept]:
        """The files that nobody knows of from now on.

        What is noted without its file is forgotten too, however new it is, so that it is sent
        again; a power cut may have undone what an earlier sweep noted.
        """
        since_ms = self.clock.now_ms(connection) - KEPT_MS
        used = checks.bundles_in_use(connection)
        known = set()
        for account_id, row in store.of_all_accounts(connection):
            kept = Kept(account_id, row.sha256)
            if row.sha256 in used or (row.created_ms >= since_ms and kept in there):
                known.add(kept)
            else:
                store.remove(connection, account_id, row.sha256)
        return there - known
