"""SQL of variables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    Connection,
    Row,
    Select,
    bindparam,
    delete,
    func,
    insert,
    select,
)

from service.db.tables.job_inputs import variable
from service.variables.model import Level, Owner, VariableRow
from service.vault.encryption import OVERHEAD_BYTES

_COLUMNS: Final = (
    variable.c.account_id,
    variable.c.level,
    variable.c.owner_id,
    variable.c.key,
    variable.c.value,
    variable.c.locked,
    variable.c.secret,
)
_OF_OWNER: Final = (
    variable.c.account_id == bindparam("account"),
    variable.c.level == bindparam("of_level"),
    variable.c.owner_id == bindparam("owner"),
)
_ALL: Final[Select[Any]] = select(*_COLUMNS).where(*_OF_OWNER)
_BY_KEY: Final = _ALL.order_by(variable.c.key)
_IN_ORDER: Final = _ALL.order_by(variable.c.position)
_ONE: Final = _ALL.where(variable.c.key == bindparam("wanted"))
_OF_SOME: Final[Select[Any]] = (
    select(*_COLUMNS)
    .where(
        variable.c.level == bindparam("of_level"),
        variable.c.owner_id.in_(bindparam("owners", expanding=True)),
    )
    .order_by(variable.c.owner_id, variable.c.position)
)
_SIZE: Final = select(
    func.coalesce(
        func.sum(func.length(variable.c.key) + func.length(variable.c.value) - OVERHEAD_BYTES), 0
    )
).where(*_OF_OWNER)
SECRETS: Final = variable.c.value
_REMOVE_ALL: Final = delete(variable).where(*_OF_OWNER)
_REMOVE: Final = _REMOVE_ALL.where(variable.c.key == bindparam("wanted"))


def find(connection: Connection, owner: Owner, key: str) -> VariableRow | None:
    """One variable. None: the owner has none of this key."""
    row = connection.execute(_ONE, {**_owner_values(owner), "wanted": key}).first()
    return None if row is None else read(row)


def list_page(
    connection: Connection, owner: Owner, *, limit: int, offset: int
) -> tuple[VariableRow, ...]:
    """A page of the owner's variables, by key."""
    rows = connection.execute(_BY_KEY.limit(limit).offset(offset), _owner_values(owner))
    return tuple(map(read, rows))


def list_all(connection: Connection, owner: Owner) -> tuple[VariableRow, ...]:
    """All variables of an owner, in the order in which they were sent."""
    return tuple(map(read, connection.execute(_IN_ORDER, _owner_values(owner))))


def find_of_many(
    connection: Connection, level: Level, owner_ids: Iterable[str]
) -> dict[str, list[VariableRow]]:
    """The variables of several checks or groups, by their ids, in the order as above."""
    values = {"of_level": level.value, "owners": list(owner_ids)}
    found: dict[str, list[VariableRow]] = {}
    for row in connection.execute(_OF_SOME, values):
        found.setdefault(row.owner_id, []).append(read(row))
    return found


def size_bytes(connection: Connection, owner: Owner) -> int:
    """How many bytes the keys and values of an owner have together."""
    return int(connection.execute(_SIZE, _owner_values(owner)).scalar_one())


def add(connection: Connection, rows: Sequence[VariableRow]) -> None:
    """Store variables, in this order."""
    values = [_row_values(row, position) for position, row in enumerate(rows)]
    if values:
        connection.execute(insert(variable), values)


def remove(connection: Connection, owner: Owner, key: str) -> bool:
    """Forget a variable. False: the owner has none of this key."""
    return connection.execute(_REMOVE, {**_owner_values(owner), "wanted": key}).rowcount == 1


def remove_all(connection: Connection, owner: Owner) -> None:
    """Forget all variables of an owner."""
    connection.execute(_REMOVE_ALL, _owner_values(owner))


def _owner_values(owner: Owner) -> Mapping[str, str]:
    return {
        "account": owner.account_id,
        "of_level": owner.level.value,
        "owner": owner.owner_id,
    }


def _row_values(row: VariableRow, position: int) -> dict[str, Any]:
    return {
        "account_id": row.owner.account_id,
        "level": row.owner.level.value,
        "owner_id": row.owner.owner_id,
        "key": row.key,
        "position": position,
        "value": row.value,
        "locked": row.locked,
        "secret": row.secret,
    }


def read(row: Row[Any]) -> VariableRow:
    """A variable of a row with these columns."""
    return VariableRow(
        owner=Owner(row.account_id, Level(row.level), row.owner_id),
        key=row.key,
        value=row.value,
        locked=row.locked,
        secret=row.secret,
    )
