"""Checks as a shelf of sealed values."""

from dataclasses import replace
from typing import Final

from service.checks import store
from service.checks.encryption import UNREADABLE_SPEC, decrypt_bodies, decrypt_spec, encrypt
from service.checks.model import SealedRow
from service.vault.encryption import UnsealableError, Vault
from service.vault.reencrypt import EncryptedTable


def _anew(row: SealedRow, vault: Vault) -> SealedRow:
    """One that an earlier version has left in clear is sealed if there is something to seal."""
    named = {"account_id": row.account_id, "check_id": row.id}
    whole = decrypt_bodies(row, vault)
    return replace(row, **encrypt({**whole, "spec": _spec(row, vault)}, vault, **named))


def _spec(row: SealedRow, vault: Vault) -> bytes:
    """One that does not open must not bind the check's secrets to a key that is to go."""
    try:
        return decrypt_spec(row.spec, vault, account_id=row.account_id, check_id=row.id)
    except UnsealableError:
        return UNREADABLE_SPEC


ENCRYPTED: Final = EncryptedTable(
    unreadable="checks.unreadable",
    heads=store.heads,
    every=store.encrypt,
    sealed=lambda row: row.secrets or b"",
    anew=_anew,
    put=store.put_secrets,
    named=lambda row: {"check_id": row.id},
)
