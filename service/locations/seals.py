"""Private locations as a shelf of sealed values."""

from dataclasses import replace
from typing import Final

from service.locations import store
from service.locations.model import LocationRow
from service.locations.sealing import opened, sealed
from service.vault.anew import Shelf
from service.vault.sealing import Vault


def _anew(row: LocationRow, vault: Vault) -> LocationRow:
    """One that an earlier version has left in clear is sealed if there is something to seal."""
    whole = opened(row, vault).proxy_url
    return replace(row, **sealed(whole, vault, account_id=row.account_id, location_id=row.id))


SHELF: Final = Shelf(
    unreadable="locations.unreadable",
    heads=store.heads,
    every=store.sealed,
    sealed=lambda row: row.sealed_proxy_url or b"",
    anew=_anew,
    put=store.update_location,
    named=lambda row: {"location_id": row.id},
)
