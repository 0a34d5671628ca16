"""Sealing anew what an older key has sealed, and for the first time what stands in clear."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog
from sqlalchemy import Connection

from service.vault.encryption import HEAD_BYTES, UnsealableError, Vault

log = structlog.get_logger()

RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptedTable(Generic[RowT]):
    """A table with sealed values."""

    unreadable: str
    """The event of the log for a row that does not open."""
    heads: Callable[[Connection], frozenset[bytes]]
    """What its sealed values begin with, by which a vault knows its keys."""
    every: Callable[[Connection], Iterable[RowT]]
    """All rows that have any, whosever they are."""
    sealed: Callable[[RowT], bytes]
    """A row's value that tells with which key all of them were sealed."""
    anew: Callable[[RowT, Vault], RowT]
    """The row with all of its values opened and sealed again."""
    put: Callable[[Connection, RowT], None]
    """Store the sealed values of a row."""
    named: Callable[[RowT], Mapping[str, str]]
    """What a line of the log calls a row."""


def rotate(connection: Connection, shelf: EncryptedTable[RowT], vault: Vault) -> int:
    """Seal with the current key what is not yet; how many rows.

    One that does not open stays as it is: it must not keep the service from starting.
    """
    old = [row for row in shelf.every(connection) if not _is_current(shelf.sealed(row), vault)]
    return sum(_is_sealed_anew(connection, shelf, row, vault) for row in old)


def _is_current(sealed: bytes, vault: Vault) -> bool:
    return vault.is_current(sealed[:HEAD_BYTES])


def _is_sealed_anew(
    connection: Connection, shelf: EncryptedTable[RowT], row: RowT, vault: Vault
) -> bool:
    try:
        fresh = shelf.anew(row, vault)
    except UnsealableError as problem:
        log.exception(shelf.unreadable, reason=str(problem), **shelf.named(row))
        return False
    shelf.put(connection, fresh)
    return True
