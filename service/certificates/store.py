"""SQL of client certificates."""

from dataclasses import asdict
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, bindparam, delete, func, insert, select

from service.certificates.model import CertificateRow
from service.db.tables.job_inputs import client_certificate

_EVERY: Final[Select[Any]] = select(client_certificate)
_OF_ACCOUNT: Final = client_certificate.c.account_id == bindparam("account")
_ALL: Final = _EVERY.where(_OF_ACCOUNT).order_by(client_certificate.c.serial.desc())
_ONE: Final = _EVERY.where(_OF_ACCOUNT, client_certificate.c.id == bindparam("wanted"))
_REMOVE: Final = delete(client_certificate).where(
    _OF_ACCOUNT, client_certificate.c.id == bindparam("wanted")
)
_PARTS: Final = (
    client_certificate.c.cert,
    func.coalesce(client_certificate.c.ca, ""),
    client_certificate.c.key,
)
_SIZE: Final = select(func.coalesce(func.sum(sum(map(func.length, _PARTS), start=0)), 0)).where(
    _OF_ACCOUNT
)
_NEWEST: Final = select(func.coalesce(func.max(client_certificate.c.serial), 0)).where(_OF_ACCOUNT)
SECRETS: Final = client_certificate.c.key


def find(connection: Connection, account_id: str, certificate_id: str) -> CertificateRow | None:
    """One certificate. None: the account has none with this id."""
    values = {"account": account_id, "wanted": certificate_id}
    row = connection.execute(_ONE, values).first()
    return None if row is None else read(row)


def list_all(connection: Connection, account_id: str) -> tuple[CertificateRow, ...]:
    """The account's certificates, newest first."""
    return tuple(map(read, connection.execute(_ALL, {"account": account_id})))


def size_bytes(connection: Connection, account_id: str) -> int:
    """How many bytes the certificates of an account have together, keys included."""
    return int(connection.execute(_SIZE, {"account": account_id}).scalar_one())


def find_newest_serial(connection: Connection, account_id: str) -> int:
    """The serial of the account's newest certificate; 0 when it has none."""
    return int(connection.execute(_NEWEST, {"account": account_id}).scalar_one())


def add(connection: Connection, row: CertificateRow) -> None:
    """Store a certificate."""
    connection.execute(insert(client_certificate), asdict(row))


def remove(connection: Connection, account_id: str, certificate_id: str) -> bool:
    """Forget a certificate. False: the account has none with this id."""
    values = {"account": account_id, "wanted": certificate_id}
    return connection.execute(_REMOVE, values).rowcount == 1


def read(row: Row[Any]) -> CertificateRow:
    """A certificate of a row."""
    return CertificateRow(**row._mapping)  # noqa: SLF001 - SQLAlchemy's documented face of a row
