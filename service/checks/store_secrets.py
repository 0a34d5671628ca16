"""SQL of checks' secrets: which keys they are sealed with, and sealing them anew."""

from typing import Any, Final

from sqlalchemy import Connection, Select, bindparam, func, select, update

from service.checks.model import SealedRow
from service.db.tables.checks import check_
from service.vault.sealing import HEAD_BYTES

_HAS_SECRETS: Final = check_.c.secrets.is_not(None)
_HEADS: Final = select(func.substr(check_.c.secrets, 1, HEAD_BYTES)).where(_HAS_SECRETS).distinct()
_SEALED: Final[Select[Any]] = select(
    check_.c.id,
    check_.c.account_id,
    check_.c.doc,
    check_.c.applied,
    check_.c.spec,
    check_.c.secrets,
).where(_HAS_SECRETS)

_STORED: Final = ("doc", "applied", "spec", "secrets")
_PUT: Final = (
    update(check_)
    .where(check_.c.id == bindparam("of_row"))
    .values({name: bindparam(name) for name in _STORED})
)


def heads(connection: Connection) -> frozenset[bytes]:
    """What sealed secrets begin with; specs are always sealed together with them."""
    return frozenset(map(bytes, connection.execute(_HEADS).scalars()))


def sealed(connection: Connection) -> list[SealedRow]:
    """Every check with secrets, whosever it is."""
    rows = connection.execute(_SEALED)
    return [SealedRow(**row._mapping) for row in rows]  # noqa: SLF001 - its documented face


def put_secrets(connection: Connection, row: SealedRow) -> None:
    """Store the secrets of a check sealed anew, and what is left of it."""
    connection.execute(_PUT, {**{name: getattr(row, name) for name in _STORED}, "of_row": row.id})
