"""Groups as a shelf of sealed values."""

from dataclasses import replace
from typing import Final

from service.groups import store
from service.groups.encryption import decrypt, encrypt
from service.groups.model import GroupRow
from service.vault.encryption import Vault
from service.vault.reencrypt import EncryptedTable


def _anew(row: GroupRow, vault: Vault) -> GroupRow:
    """One that an earlier version has left in clear is sealed if there is something to seal."""
    doc = decrypt(row, vault).doc
    return replace(row, **encrypt(doc, vault, account_id=row.account_id, group_id=row.id))


ENCRYPTED: Final = EncryptedTable(
    unreadable="groups.unreadable",
    heads=store.heads,
    every=store.encrypt,
    sealed=lambda row: row.secrets or b"",
    anew=_anew,
    put=store.put_secrets,
    named=lambda row: {"group_id": str(row.id)},
)
