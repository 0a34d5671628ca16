"""Checks as a shelf of sealed values."""

from dataclasses import replace
from typing import Final

from service.checks import store_secrets
from service.checks.model import SealedRow
from service.checks.sealing import UNREADABLE_SPEC, opened_bodies, opened_spec, sealed
from service.vault.anew import Shelf
from service.vault.sealing import UnsealableError, Vault


def _anew(row: SealedRow, vault: Vault) -> SealedRow:
    """One that an earlier version has left in clear is sealed if there is something to seal."""
    named = {"account_id": row.account_id, "check_id": row.id}
    whole = opened_bodies(row, vault)
    return replace(row, **sealed({**whole, "spec": _spec(row, vault)}, vault, **named))


def _spec(row: SealedRow, vault: Vault) -> bytes:
    """One that does not open must not bind the check's secrets to a key that is to go."""
    try:
        return opened_spec(row.spec, vault, account_id=row.account_id, check_id=row.id)
    except UnsealableError:
        return UNREADABLE_SPEC


SHELF: Final = Shelf(
    unreadable="checks.unreadable",
    heads=store_secrets.heads,
    every=store_secrets.sealed,
    sealed=lambda row: row.secrets or b"",
    anew=_anew,
    put=store_secrets.put_secrets,
    named=lambda row: {"check_id": row.id},
)
