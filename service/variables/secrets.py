"""Secret variables: encrypted, and handed to jobs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Row

from contract.job import Variable
from service.variables import postgresql, sqlite, store
from service.variables.model import Owner, VariableRow
from service.vault.encryption import DecryptionError, Vault
from service.vault.reencrypt import EncryptedTable

log = structlog.get_logger()


def _reencrypt(row: Row[Any], vault: Vault) -> Mapping[str, Any]:
    stored = store.read(row)
    return {"value": vault.encrypt(vault.decrypt(stored.value, stored.place), stored.place)}


ENCRYPTED: Final = EncryptedTable(
    column=store.SECRETS,
    unreadable="variables.unreadable",
    reencrypt=_reencrypt,
    describe=lambda row: {"level": row.level, "owner": row.owner_id, "key": row.key},
)


class RunVariables:
    """The variables of an account's runs; each is opened once, and only when a run needs it."""

    def __init__(self, rows: Iterable[VariableRow], vault: Vault) -> None:
        self._rows: dict[Owner, list[VariableRow]] = defaultdict(list)
        self._vault = vault
        self._opened: dict[tuple[Owner, str], Variable | None] = {}
        for row in rows:
            self._rows[row.owner].append(row)

    def of(
        self, owners: Iterable[Owner], *, names: frozenset[str] | None = None
    ) -> tuple[Variable, ...]:
        """What a run has of these owners, of whom later ones win; only these names.

        No names: all that there are.
        """
        rows = {row.key: row for owner in owners for row in self._rows.get(owner, ())}
        wanted = rows.values() if names is None else (rows[key] for key in rows.keys() & names)
        found = (self._open(row) for row in wanted)
        return tuple(variable for variable in found if variable is not None)

    def _open(self, row: VariableRow) -> Variable | None:
        """None: it cannot be opened, which must not keep everybody's jobs back."""
        known = (row.owner, row.key)
        if known not in self._opened:
            self._opened[known] = self._opened_now(row)
        return self._opened[known]

    def _opened_now(self, row: VariableRow) -> Variable | None:
        try:
            value = self._vault.decrypt(row.value, row.place)
        except DecryptionError as problem:
            where = {"level": row.owner.level.value, "owner": row.owner.owner_id, "key": row.key}
            log.exception("variables.unreadable", reason=str(problem), **where)
            return None
        return Variable(key=row.key, value=value, locked=row.locked, secret=row.secret)


_FIND_FOR_JOBS: Final = {
    "sqlite": sqlite.find_for_jobs,
    "postgresql": postgresql.find_for_jobs,
}
"""Finds the variables of runs, by the database engine."""


def variables_for_jobs(
    connection: Connection, vault: Vault, account_id: str, *, owners: Iterable[Owner]
) -> RunVariables:
    """The variables of an account and of these groups and checks of it."""
    ids: dict[str, list[str]] = defaultdict(list)
    for owner in owners:
        ids[owner.level].append(owner.owner_id)
    rows = _FIND_FOR_JOBS[connection.dialect.name](
        connection, account_id, group_ids=ids["group"], check_ids=ids["check"]
    )
    return RunVariables(rows, vault)
