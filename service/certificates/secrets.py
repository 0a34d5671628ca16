"""Private keys of certificates: encrypted, and handed to jobs."""

from collections.abc import Mapping
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Row

from contract.job import ClientCertificate
from service.certificates import store
from service.certificates.model import CertificateRow
from service.vault.encryption import DecryptionError, Vault
from service.vault.reencrypt import EncryptedTable

log = structlog.get_logger()


def _reencrypt(row: Row[Any], vault: Vault) -> Mapping[str, Any]:
    stored = store.read(row)
    place = stored.place("key")
    fresh = {"key": vault.encrypt(vault.decrypt(stored.key, place), place)}
    if stored.passphrase is not None:
        place = stored.place("passphrase")
        fresh["passphrase"] = vault.encrypt(vault.decrypt(stored.passphrase, place), place)
    return fresh


ENCRYPTED: Final = EncryptedTable(
    column=store.SECRETS,
    unreadable="certificates.unreadable",
    reencrypt=_reencrypt,
    describe=lambda row: {"certificate_id": row.id},
)


def certificates_for_jobs(
    connection: Connection, vault: Vault, account_id: str
) -> tuple[ClientCertificate, ...]:
    """The account's certificates as jobs carry them, newest first.

    One that cannot be opened is left out: it must not keep everybody's jobs back.
    """
    opened = (_decrypt(row, vault) for row in store.list_all(connection, account_id))
    return tuple(certificate for certificate in opened if certificate is not None)


def _decrypt(row: CertificateRow, vault: Vault) -> ClientCertificate | None:
    try:
        key = vault.decrypt(row.key, row.place("key"))
        sealed, place = row.passphrase, row.place("passphrase")
        passphrase = None if sealed is None else vault.decrypt(sealed, place)
    except DecryptionError as problem:
        log.exception("certificates.unreadable", certificate_id=row.id, reason=str(problem))
        return None
    return ClientCertificate(
        host=row.host, cert=row.cert, key=key, ca=row.ca, passphrase=passphrase
    )
