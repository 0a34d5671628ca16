"""Client certificates as a shelf of sealed values."""

from dataclasses import replace
from typing import Final

from service.certificates import store
from service.certificates.model import CertificateRow
from service.vault.anew import Shelf
from service.vault.sealing import Vault


def _anew(row: CertificateRow, vault: Vault) -> CertificateRow:
    place = row.place("key")
    key = vault.seal(vault.open(row.key, place), place)
    if row.passphrase is None:
        return replace(row, key=key)
    place = row.place("passphrase")
    return replace(row, key=key, passphrase=vault.seal(vault.open(row.passphrase, place), place))


SHELF: Final = Shelf(
    unreadable="certificates.unreadable",
    heads=store.heads,
    every=store.every,
    sealed=lambda row: row.key,
    anew=_anew,
    put=store.put_secrets,
    named=lambda row: {"certificate_id": row.id},
)
