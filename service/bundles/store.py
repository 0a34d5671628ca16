"""SQL of code bundles."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from service.bundles.model import BundleRow
from service.db.tables.supplies import code_bundle

_SAME: Final = (code_bundle.c.account_id == bindparam("account")) & (
    code_bundle.c.sha256 == bindparam("digest")
)
_ONE: Final = select(
    code_bundle.c.sha256, code_bundle.c.size_bytes, code_bundle.c.created_ms
).where(_SAME)
_TOUCH: Final = update(code_bundle).where(_SAME).values(created_ms=bindparam("now_ms"))
_ALL: Final = select(
    code_bundle.c.account_id,
    code_bundle.c.sha256,
    code_bundle.c.size_bytes,
    code_bundle.c.created_ms,
)
_REMOVE: Final = delete(code_bundle).where(_SAME)


def find(connection: Connection, account_id: str, sha256: str) -> BundleRow | None:
    """One bundle. None: the account has none with this content."""
    row = connection.execute(_ONE, {"account": account_id, "digest": sha256}).first()
    return None if row is None else BundleRow(**row._mapping)  # noqa: SLF001 - the face of a row


def put(connection: Connection, account_id: str, row: BundleRow) -> None:
    """Store a bundle, or note that it was sent again."""
    values = {"account": account_id, "digest": row.sha256, "now_ms": row.created_ms}
    if connection.execute(_TOUCH, values).rowcount == 0:
        connection.execute(
            insert(code_bundle),
            {
                "account_id": account_id,
                "sha256": row.sha256,
                "size_bytes": row.size_bytes,
                "created_ms": row.created_ms,
            },
        )


def of_all_accounts(connection: Connection) -> Sequence[tuple[str, BundleRow]]:
    """Every bundle, with the account whose it is."""
    return [
        (account_id, BundleRow(sha256=sha256, size_bytes=size_bytes, created_ms=created_ms))
        for account_id, sha256, size_bytes, created_ms in connection.execute(_ALL)
    ]


def remove(connection: Connection, account_id: str, sha256: str) -> None:
    """Forget a bundle."""
    connection.execute(_REMOVE, {"account": account_id, "digest": sha256})
