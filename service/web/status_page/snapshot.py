"""All that the database knows of a status page at one time."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection

from service.accounts.keys import Pepper, digest_key
from service.incidents import actions as incidents
from service.incidents.model import Incident
from service.status_pages import actions as status_pages
from service.status_pages.model import Maintenance, StatusPage

_MOST_INCIDENTS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A status page with what is shown of it, and whom it opens to."""

    page: StatusPage
    incidents: Sequence[Incident]
    """The newest ones of its services, the newest first."""
    maintenance: Sequence[Maintenance]
    """What it announces, the first to begin first."""
    key_hashes: frozenset[bytes] = field(repr=False)
    taken_ms: int

    def opens_to(self, key: str | None, pepper: Pepper) -> bool:
        """Whether a visitor with this key may see it. None: they have sent none."""
        if not self.page.is_private:
            return True
        digest = pepper.keyed(digest_key(key or ""))
        return any(hmac.compare_digest(digest, one) for one in self.key_hashes)


def take_snapshot(connection: Connection, url: str, *, now_ms: int) -> Snapshot | None:
    """The status page of an address. None: there is none."""
    page = status_pages.find_at(connection, url)
    if page is None:
        return None
    ids = [one.id for one in page.list_services()]
    found = incidents.list_of_services(connection, page.account_id, ids, limit=_MOST_INCIDENTS)
    hashes = status_pages.list_key_hashes(connection, page.id)
    return Snapshot(
        page=page,
        incidents=found,
        maintenance=status_pages.list_maintenance(connection, page, now_ms=now_ms),
        key_hashes=hashes,
        taken_ms=now_ms,
    )
