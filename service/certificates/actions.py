"""What everyone asks about client certificates; each is part of the caller's transaction."""

from sqlalchemy import Connection

from service.certificates import store
from service.certificates.model import CertificateRow
from service.http.errors import NotFoundError


def find(connection: Connection, account_id: str, certificate_id: str) -> CertificateRow:
    """A certificate of the account.

    Raises:
        NotFoundError: the account has none with this id.
    """
    row = store.find(connection, account_id, certificate_id)
    if row is None:
        raise _none(certificate_id)
    return row


def of_account(connection: Connection, account_id: str) -> tuple[CertificateRow, ...]:
    """The account's certificates, newest first."""
    return store.of_account(connection, account_id)


def delete(connection: Connection, account_id: str, certificate_id: str) -> None:
    """Forget a certificate; runs show it from their next handing out on no more.

    Raises:
        NotFoundError: the account has none with this id.
    """
    if not store.remove(connection, account_id, certificate_id):
        raise _none(certificate_id)


def _none(certificate_id: str) -> NotFoundError:
    return NotFoundError(f"There is no client certificate {certificate_id}.")
