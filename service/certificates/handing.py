"""The client certificates of runs, opened when jobs are handed to an agent."""

import structlog
from sqlalchemy import Connection

from contract.job import ClientCertificate
from service.certificates import store
from service.certificates.model import CertificateRow
from service.vault.sealing import UnsealableError, Vault

log = structlog.get_logger()


def for_runs(
    connection: Connection, vault: Vault, account_id: str
) -> tuple[ClientCertificate, ...]:
    """The account's certificates as jobs carry them, newest first.

    One that cannot be opened is left out: it must not keep everybody's jobs back.
    """
    opened = (_opened(row, vault) for row in store.of_account(connection, account_id))
    return tuple(certificate for certificate in opened if certificate is not None)


def _opened(row: CertificateRow, vault: Vault) -> ClientCertificate | None:
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
