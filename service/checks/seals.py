"""Checks as a shelf of sealed values."""

from dataclasses import replace
from typing import Final

from service.checks import store_secrets
from service.checks.model import SealedRow
from service.checks.sealing import opened_bodies, opened_spec, sealed
from service.vault.anew import Shelf
from service.vault.sealing import Vault


def _anew(row: SealedRow, vault: Vault) -> SealedRow:
    """One that an earlier version has left in clear is sealed if there is something to seal."""
    named = {"account_id": row.account_id, "check_id": row.id}
    whole = opened_bodies(row, vault)
    spec = opened_spec(row.spec, vault, **named)
    return replace(row, **sealed({**whole, "spec": spec}, vault, **named))


SHELF: Final = Shelf(
    unreadable="checks.unreadable",
    heads=store_secrets.heads,
    every=store_secrets.sealed,
    sealed=lambda row: row.secrets or b"",
    anew=_anew,
    put=store_secrets.put_secrets,
    named=lambda row: {"check_id": row.id},
)
