"""Request and response bodies of certificates."""

from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from service.certificates.model import CertificateRow
from service.certificates.rules import HOST_PATTERN, host_problem
from service.http.schema import RequestModel, ResponseModel, Text, blank_is_none, judged_by
from service.http.times import Moment, moment
from service.vault.texts import Untold

MAX_CERT_LETTERS: Final = 32_768
MAX_KEY_LETTERS: Final = 8_192
MAX_PASSPHRASE_LETTERS: Final = 1_000
MAX_HOST_LETTERS: Final = 260
"""Room for the longest host name and a port."""

Host = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_HOST_LETTERS,
        json_schema_extra={"pattern": HOST_PATTERN, "examples": ["*.shop.example"]},
    ),
    judged_by(host_problem),
]
Pem = Annotated[Text, Field(min_length=1, max_length=MAX_CERT_LETTERS)]


class ClientCertificateWrite(RequestModel):
    """A client certificate as people send it."""

    host: Host
    """An exact host, or a glob (`*`, `?`, `[ab]`), perhaps with a port: exact wins over globs, and
    of those the newest."""
    cert: Pem
    """PEM; further certificates of its chain may follow."""
    key: Annotated[Text, Field(min_length=1, max_length=MAX_KEY_LETTERS), Untold]
    """The private key of the certificate, in PEM; never shown again."""
    ca: Annotated[Pem | None, BeforeValidator(blank_is_none)] = None
    """PEM of further roots for hosts that are shown it. Null: the agent's alone."""
    passphrase: Annotated[
        Annotated[Text, Field(min_length=1, max_length=MAX_PASSPHRASE_LETTERS), Untold] | None,
        BeforeValidator(blank_is_none),
    ] = None
    """The passphrase of an encrypted key; never shown again. Null: the key is not encrypted."""


class ClientCertificateShown(ResponseModel):
    """A client certificate, without its secrets."""

    id: str
    host: str
    cert: str
    ca: str | None
    created_at: Moment = Field(alias="created_at")
    expires_at: Moment = Field(alias="expires_at")
    """When the certificate ends, or has ended: then it is shown to hosts all the same."""


def render(row: CertificateRow) -> ClientCertificateShown:
    """A certificate as its answer, without its secrets."""
    return ClientCertificateShown(
        id=row.id,
        host=row.host,
        cert=row.cert,
        ca=row.ca,
        created_at=moment(row.created_ms),
        expires_at=moment(row.expires_ms),
    )
