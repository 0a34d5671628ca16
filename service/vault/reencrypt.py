"""Encrypts again what an older master key encrypted, and for the first time what is in clear."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog
from sqlalchemy import Column, Connection, Row, func, select, update

from service.vault.encryption import HEAD_BYTES, DecryptionError, Vault

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptedTable:
    """A table with encrypted values, and how its rows are encrypted again."""

    column: Column[Any]
    """The column that tells which key encrypted the values of a row. Null: the row has none."""
    unreadable: str
    """The log event for a row that cannot be decrypted."""
    reencrypt: Callable[[Row[Any], Vault], Mapping[str, Any]]
    """Decrypts the values of a row and encrypts them again: the columns to store."""
    describe: Callable[[Row[Any]], Mapping[str, str]]
    """What names a row in the log."""

    def heads(self, connection: Connection) -> frozenset[bytes]:
        """The first bytes of all encrypted values, which tell their keys."""
        head = func.substr(self.column, 1, HEAD_BYTES)
        query = select(head).where(self.column.is_not(None)).distinct()
        return frozenset(map(bytes, connection.execute(query).scalars()))

    def rows(self, connection: Connection) -> list[Row[Any]]:
        """All rows with encrypted values, of all accounts."""
        query = select(self.column.table).where(self.column.is_not(None))
        return list(connection.execute(query))

    def head(self, row: Row[Any]) -> bytes:
        """The first bytes of a row's encrypted values."""
        return bytes(getattr(row, self.column.name)[:HEAD_BYTES])

    def rotate(self, connection: Connection, vault: Vault) -> int:
        """Encrypt with the current key what is not yet; how many rows.

        A row that cannot be decrypted stays as it is: it must not keep the service from starting.
        """
        old = [row for row in self.rows(connection) if not vault.is_current(self.head(row))]
        return sum(self._rotate_row(connection, row, vault) for row in old)

    def _rotate_row(self, connection: Connection, row: Row[Any], vault: Vault) -> bool:
        try:
            fresh = self.reencrypt(row, vault)
        except DecryptionError as problem:
            log.exception(self.unreadable, reason=str(problem), **self.describe(row))
            return False
        table: Final = self.column.table
        is_row = (key == getattr(row, key.name) for key in table.primary_key)
        connection.execute(update(table).where(*is_row).values(**fresh))
        return True
