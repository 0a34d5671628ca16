"""Which keys variables are sealed with, and sealing them anew when the key has changed."""

import structlog
from sqlalchemy import Connection

from service.variables import store
from service.variables.model import VariableRow
from service.vault.sealing import HEAD_BYTES, UnsealableError, Vault

log = structlog.get_logger()


def heads(connection: Connection) -> frozenset[bytes]:
    """What sealed values begin with, by which a vault knows its keys."""
    return store.heads(connection)


def seal_anew(connection: Connection, vault: Vault) -> int:
    """Seal what an older key has sealed with the current one; how many values.

    One that does not open stays as it is: it must not keep the service from starting.
    """
    old = [row for row in store.every(connection) if not vault.is_current(row.value[:HEAD_BYTES])]
    return sum(_is_sealed_anew(connection, row, vault) for row in old)


def _is_sealed_anew(connection: Connection, row: VariableRow, vault: Vault) -> bool:
    try:
        value = vault.open(row.value, row.place)
    except UnsealableError as problem:
        where = {"level": row.owner.level.value, "owner": row.owner.owner_id, "key": row.key}
        log.exception("variables.unreadable", reason=str(problem), **where)
        return False
    store.put_value(connection, row, vault.seal(value, row.place))
    return True
