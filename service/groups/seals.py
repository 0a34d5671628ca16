"""Groups as a shelf of sealed values."""

from dataclasses import replace
from typing import Final

from service.groups import store
from service.groups.model import GroupRow
from service.groups.sealing import opened, sealed
from service.vault.anew import Shelf
from service.vault.sealing import Vault


def _anew(row: GroupRow, vault: Vault) -> GroupRow:
    """One that an earlier version has left in clear is sealed if there is something to seal."""
    doc = opened(row, vault).doc
    return replace(row, **sealed(doc, vault, account_id=row.account_id, group_id=row.id))


SHELF: Final = Shelf(
    unreadable="groups.unreadable",
    heads=store.heads,
    every=store.sealed,
    sealed=lambda row: row.secrets or b"",
    anew=_anew,
    put=store.put_secrets,
    named=lambda row: {"group_id": str(row.id)},
)
