"""Client certificates of authorities of our own, as people send them and as they are stored."""

import datetime as dt
from typing import Any

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from sqlalchemy import Connection

from service.certificates import api
from service.certificates.api import ClientCertificateWrite
from service.certificates.model import CertificateRow
from service.certificates.rules import check_certificate
from service.vault.encryption import Scope, Vault

NOW = dt.datetime.now(dt.UTC)
DAY = dt.timedelta(days=1)


def issued(ca: trustme.CA | None = None, *, days: int = 90) -> tuple[str, str]:
    """A certificate that ends in so many days, and its key; both in PEM."""
    leaf = (ca or trustme.CA()).issue_cert(
        "agent@shop.test", not_before=NOW - 200 * DAY, not_after=NOW + days * DAY
    )
    return leaf.cert_chain_pems[0].bytes().decode(), leaf.private_key_pem.bytes().decode()


def encrypted(key: str, passphrase: str, *, legacy: bool = False) -> str:
    """The key, opened by a passphrase."""
    form = PrivateFormat.TraditionalOpenSSL if legacy else PrivateFormat.PKCS8
    cipher = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    private = load_pem_private_key(key.encode(), None)
    return private.private_bytes(Encoding.PEM, form, cipher).decode()


def certificate_body(host: str = "*.shop.test", **fields: Any) -> dict[str, Any]:
    """A certificate as a person sends it."""
    cert, key = issued()
    return {"host": host, "cert": cert, "key": key, **fields}


def a_client_certificate(
    connection: Connection, account_id: str, vault: Vault, **fields: Any
) -> CertificateRow:
    """Kept for an account; with a passphrase unless the fields say otherwise."""
    cert, key = issued()
    given = {"host": "*.shop.test", "cert": cert, "key": encrypted(key, "open sesame")}
    body = ClientCertificateWrite(**{**given, "passphrase": "open sesame", **fields})
    expires_ms = check_certificate(
        cert=body.cert, key=body.key, passphrase=body.passphrase, ca=body.ca
    )
    scope = Scope(account_id, int(NOW.timestamp() * 1000), vault)
    return api.create(connection, scope, body, expires_ms=expires_ms)
