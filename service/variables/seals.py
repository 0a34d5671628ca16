"""Variables as a shelf of sealed values."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from service.variables import store
from service.variables.model import VariableRow
from service.vault.anew import Shelf
from service.vault.sealing import Vault


def _anew(row: VariableRow, vault: Vault) -> VariableRow:
    return replace(row, value=vault.seal(vault.open(row.value, row.place), row.place))


def _named(row: VariableRow) -> Mapping[str, str]:
    return {"level": row.owner.level.value, "owner": row.owner.owner_id, "key": row.key}


SHELF: Final = Shelf(
    unreadable="variables.unreadable",
    heads=store.heads,
    every=store.every,
    sealed=lambda row: row.value,
    anew=_anew,
    put=store.put_value,
    named=_named,
)
