"""Private keys of certificates: encrypted, and handed to jobs."""

from dataclasses import replace
from typing import Final

import structlog
from sqlalchemy import Connection

from contract.job import ClientCertificate
from service.certificates import store
from service.certificates.model import CertificateRow
from service.vault.encryption import UnsealableError, Vault
from service.vault.reencrypt import EncryptedTable


def _anew(row: CertificateRow, vault: Vault) -> CertificateRow:
    place = row.place("key")
    key = vault.seal(vault.open(row.key, place), place)
    if row.passphrase is None:
        return replace(row, key=key)
    place = row.place("passphrase")
    return replace(row, key=key, passphrase=vault.seal(vault.open(row.passphrase, place), place))


ENCRYPTED: Final = EncryptedTable(
    unreadable="certificates.unreadable",
    heads=store.heads,
    every=store.every,
    sealed=lambda row: row.key,
    anew=_anew,
    put=store.put_secrets,
    named=lambda row: {"certificate_id": row.id},
)


log = structlog.get_logger()


def certificates_for_jobs(
    connection: Connection, vault: Vault, account_id: str
) -> tuple[ClientCertificate, ...]:
    """The account's certificates as jobs carry them, newest first.

    One that cannot be opened is left out: it must not keep everybody's jobs back.
    """
    opened = (_decrypt(row, vault) for row in store.of_account(connection, account_id))
    return tuple(certificate for certificate in opened if certificate is not None)


def _decrypt(row: CertificateRow, vault: Vault) -> ClientCertificate | None:
    try:
        key = vault.open(row.key, row.place("key"))
        sealed, place = row.passphrase, row.place("passphrase")
        passphrase = None if sealed is None else vault.open(sealed, place)
    except UnsealableError as problem:
        log.exception("certificates.unreadable", certificate_id=row.id, reason=str(problem))
        return None
    return ClientCertificate(
        host=row.host, cert=row.cert, key=key, ca=row.ca, passphrase=passphrase
    )
