"""Private locations as a shelf of sealed values."""

from dataclasses import replace
from typing import Final

from service.locations import store
from service.locations.encryption import decrypt, encrypt
from service.locations.model import LocationRow
from service.vault.encryption import Vault
from service.vault.reencrypt import EncryptedTable


def _anew(row: LocationRow, vault: Vault) -> LocationRow:
    """One that an earlier version has left in clear is sealed if there is something to seal."""
    whole = decrypt(row, vault).proxy_url
    return replace(row, **encrypt(whole, vault, account_id=row.account_id, location_id=row.id))


ENCRYPTED: Final = EncryptedTable(
    unreadable="locations.unreadable",
    heads=store.heads,
    every=store.encrypt,
    sealed=lambda row: row.sealed_proxy_url or b"",
    anew=_anew,
    put=store.update_location,
    named=lambda row: {"location_id": row.id},
)
