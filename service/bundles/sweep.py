"""Forgetting bundles that no check runs: each change of a suite sends a new one."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from service.bundles import store
from service.bundles.files import BundleFiles
from service.checks import actions as checks
from service.clock import Clock

KEPT_MS: Final = 24 * 3600 * 1000
"""So long after it was sent a check may still be set up with it."""


@dataclass(frozen=True, slots=True)
class BundleSweep:
    """Looks through the bundles of all accounts."""

    files: BundleFiles
    clock: Clock

    def sweep(self, connection: Connection) -> int:
        """Forget the old ones that no check runs; gives how many."""
        old = store.sent_before(connection, self.clock.now_ms(connection) - KEPT_MS)
        used = checks.bundles_in_use(connection) if old else frozenset()
        gone = [(account_id, sha256) for account_id, sha256 in old if sha256 not in used]
        for account_id, sha256 in gone:
            store.remove(connection, account_id, sha256)
            self.files.path(account_id, sha256).unlink(missing_ok=True)
        return len(gone)
