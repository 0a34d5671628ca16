"""Which keys certificates' secrets are sealed with, and sealing them anew."""

from dataclasses import replace

import structlog
from sqlalchemy import Connection

from service.certificates import store
from service.certificates.model import CertificateRow
from service.vault.sealing import HEAD_BYTES, UnsealableError, Vault

log = structlog.get_logger()


def heads(connection: Connection) -> frozenset[bytes]:
    """What sealed values begin with, by which a vault knows its keys."""
    return store.heads(connection)


def seal_anew(connection: Connection, vault: Vault) -> int:
    """Seal what an older key has sealed with the current one; how many certificates.

    One that does not open stays as it is: it must not keep the service from starting.
    """
    old = [row for row in store.every(connection) if not vault.is_current(row.key[:HEAD_BYTES])]
    return sum(_is_sealed_anew(connection, row, vault) for row in old)


def _is_sealed_anew(connection: Connection, row: CertificateRow, vault: Vault) -> bool:
    try:
        store.put_secrets(connection, _sealed_anew(row, vault))
    except UnsealableError as problem:
        log.exception("certificates.unreadable", certificate_id=row.id, reason=str(problem))
        return False
    return True


def _sealed_anew(row: CertificateRow, vault: Vault) -> CertificateRow:
    place = row.place("key")
    key = vault.seal(vault.open(row.key, place), place)
    if row.passphrase is None:
        return replace(row, key=key)
    place = row.place("passphrase")
    return replace(row, key=key, passphrase=vault.seal(vault.open(row.passphrase, place), place))
