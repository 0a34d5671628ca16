"""Keeping a client certificate, its secrets sealed."""

from dataclasses import dataclass

from sqlalchemy import Connection

from service.certificates import store
from service.certificates.bodies import ClientCertificateWrite
from service.certificates.model import CertificateRow, place_of
from service.certificates.rules import together_problem
from service.db.ids import new_id
from service.http.errors import InvalidError
from service.vault.sealing import Vault


@dataclass(frozen=True, slots=True)
class Keeping:
    """Whose certificates, when, and what seals them."""

    account_id: str
    now_ms: int
    vault: Vault


def create(
    connection: Connection, keeping: Keeping, body: ClientCertificateWrite, *, expires_ms: int
) -> CertificateRow:
    """Keep a certificate that fits together; jobs have it from their next handing out on.

    Raises:
        InvalidError: the account's certificates would be more than a job can carry.
    """
    serial = store.newest(connection, keeping.account_id) + 1
    row = _row(keeping, body, expires_ms=expires_ms, serial=serial)
    store.add(connection, row)
    if problem := together_problem(store.size_bytes(connection, keeping.account_id)):
        raise InvalidError(
            f"The account's client certificates would have {problem}; delete one that has ended.",
            keys=("cert",),
        )
    return row


def _row(
    keeping: Keeping, body: ClientCertificateWrite, *, expires_ms: int, serial: int
) -> CertificateRow:
    account_id, vault = keeping.account_id, keeping.vault
    certificate_id = new_id(keeping.now_ms)
    key_place = place_of(account_id, certificate_id, body.host, "key")
    passphrase_place = place_of(account_id, certificate_id, body.host, "passphrase")
    return CertificateRow(
        id=certificate_id,
        account_id=account_id,
        host=body.host,
        cert=body.cert,
        ca=body.ca,
        key=vault.seal(body.key, key_place),
        passphrase=(
            None if body.passphrase is None else vault.seal(body.passphrase, passphrase_place)
        ),
        expires_ms=expires_ms,
        created_ms=keeping.now_ms,
        serial=serial,
    )
