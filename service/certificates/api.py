"""`/v1/client-certificates`: certificates that runs show to hosts that ask for them."""

import asyncio
from typing import Annotated, Final

from fastapi import Body, Path
from pydantic import BeforeValidator, Field
from sqlalchemy import Connection
from starlette.responses import Response

from service.certificates import store
from service.certificates.model import CertificateRow, place_of
from service.certificates.rules import (
    HOST_PATTERN,
    check_certificate,
    host_problem,
    together_problem,
)
from service.db.ids import new_id
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.errors import InvalidError, NotFoundError
from service.http.mutations import Changed, ChangeDep, CreateDep, sent_fields
from service.http.routing import ONE, answers, json, json_model, keyed_operations
from service.http.schema import NO_NUL, RequestModel, ResponseModel, Text, blank_is_none, judged_by
from service.http.times import Moment, moment
from service.vault.encryption import Scope
from service.vault.texts import NotEchoed

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
    """A client certificate in a request."""

    host: Host
    """An exact host, or a glob (`*`, `?`, `[ab]`), perhaps with a port: exact wins over globs, and
    of those the newest."""
    cert: Pem
    """PEM; further certificates of its chain may follow."""
    key: Annotated[Text, Field(min_length=1, max_length=MAX_KEY_LETTERS), NotEchoed]
    """The private key of the certificate, in PEM; never shown again."""
    ca: Annotated[Pem | None, BeforeValidator(blank_is_none)] = None
    """PEM of additional roots for its hosts. Null: only the agent's roots."""
    passphrase: Annotated[
        Annotated[Text, Field(min_length=1, max_length=MAX_PASSPHRASE_LETTERS), NotEchoed] | None,
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
    """When the certificate expires or expired; expired ones are still presented to hosts."""


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


router = keyed_operations("Client certificates", prefix="/v1/client-certificates")

CertificateId = Annotated[str, Path(alias="id", pattern=NO_NUL, max_length=200)]
_SHOWN = "The certificate, without its key and passphrase."


@router.get(
    "", responses=answers(200, list[ClientCertificateShown], "All certificates, newest first.")
)
async def list_client_certificates(caller: CallerDep, backend: BackendDep) -> Response:
    """List the client certificates."""
    rows = await backend.database.read(lambda c: store.list_all(c, caller.account_id))
    return json([render(row).model_dump(mode="json") for row in rows])


@router.post("", status_code=201, responses=answers(201, ClientCertificateShown, _SHOWN))
async def create_client_certificate(
    creating: CreateDep, body: Annotated[ClientCertificateWrite, Body()]
) -> Response:
    """Store a certificate for the hosts that it matches; it is used from the next runs on."""
    # An encrypted key takes a while to open, which would hold up everyone else.
    expires_ms = await asyncio.to_thread(
        check_certificate, cert=body.cert, key=body.key, passphrase=body.passphrase, ca=body.ca
    )
    ignored = await creating.ignored_fields(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        row = create(connection, scope, body, expires_ms=expires_ms)
        answer = json_model(render(row), status=201, headers=ignored)
        return Changed(answer=answer, resource_id=row.id, fields=sent_fields(body))

    return await creating.make(change)


@router.get(ONE, responses=answers(200, ClientCertificateShown, _SHOWN, 404))
async def read_client_certificate(
    certificate_id: CertificateId, caller: CallerDep, backend: BackendDep
) -> Response:
    """Read a client certificate."""
    row = await backend.database.read(lambda c: find(c, caller.account_id, certificate_id))
    return json_model(render(row))


@router.delete(ONE, status_code=204, responses=answers(204, None, "Deleted.", 404))
async def delete_client_certificate(certificate_id: CertificateId, changing: ChangeDep) -> Response:
    """Delete a client certificate; jobs that agents already have still use it."""
    return await changing.delete(
        certificate_id, lambda c, scope: delete(c, scope.account_id, certificate_id)
    )


def find(connection: Connection, account_id: str, certificate_id: str) -> CertificateRow:
    """A certificate of the account.

    Raises:
        NotFoundError: the account has none with this id.
    """
    row = store.find(connection, account_id, certificate_id)
    if row is None:
        raise _not_found(certificate_id)
    return row


def delete(connection: Connection, account_id: str, certificate_id: str) -> None:
    """Forget a certificate; runs show it from their next handing out on no more.

    Raises:
        NotFoundError: the account has none with this id.
    """
    if not store.remove(connection, account_id, certificate_id):
        raise _not_found(certificate_id)


def _not_found(certificate_id: str) -> NotFoundError:
    return NotFoundError(f"There is no client certificate {certificate_id}.")


def create(
    connection: Connection, scope: Scope, body: ClientCertificateWrite, *, expires_ms: int
) -> CertificateRow:
    """Keep a certificate that fits together; jobs have it from their next handing out on.

    Raises:
        InvalidError: the account's certificates would be more than a job can carry.
    """
    serial = store.find_newest_serial(connection, scope.account_id) + 1
    row = _encrypt(scope, body, expires_ms=expires_ms, serial=serial)
    store.add(connection, row)
    if problem := together_problem(store.size_bytes(connection, scope.account_id)):
        raise InvalidError(
            f"The account's client certificates would have {problem}; delete one that has expired.",
            keys=("cert",),
        )
    return row


def _encrypt(
    scope: Scope, body: ClientCertificateWrite, *, expires_ms: int, serial: int
) -> CertificateRow:
    account_id, vault = scope.account_id, scope.vault
    certificate_id = new_id(scope.now_ms)
    key_place = place_of(account_id, certificate_id, body.host, "key")
    passphrase_place = place_of(account_id, certificate_id, body.host, "passphrase")
    return CertificateRow(
        id=certificate_id,
        account_id=account_id,
        host=body.host,
        cert=body.cert,
        ca=body.ca,
        key=vault.encrypt(body.key, key_place),
        passphrase=(
            None if body.passphrase is None else vault.encrypt(body.passphrase, passphrase_place)
        ),
        expires_ms=expires_ms,
        created_ms=scope.now_ms,
        serial=serial,
    )
