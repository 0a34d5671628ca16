"""`/v1/client-certificates`: certificates that runs show to hosts that ask for them."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Body, Path
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from service.certificates import store
from service.certificates.model import CertificateRow, place_of
from service.certificates.rules import expires_ms_of, together_problem
from service.certificates.schemas import ClientCertificateShown, ClientCertificateWrite, render
from service.db.ids import new_id
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.errors import InvalidError, NotFoundError
from service.http.mutations import Changed, ChangeDep, CreateDep, gone, sent_fields
from service.http.routing import ONE, answers, json, json_model, keyed_operations
from service.http.schema import NO_NUL
from service.http.validation import ignored_header
from service.vault.encryption import Vault

router = keyed_operations("Client certificates", prefix="/v1/client-certificates")

CertificateId = Annotated[str, Path(alias="id", pattern=NO_NUL, max_length=200)]
_SHOWN = "The certificate, without its key and passphrase."


@router.get(
    "", responses=answers(200, list[ClientCertificateShown], "All certificates, newest first.")
)
async def list_client_certificates(caller: CallerDep, backend: BackendDep) -> Response:
    """List the client certificates."""
    rows = await backend.database.read(lambda connection: of_account(connection, caller.account_id))
    listed: list[dict[str, Any]] = [render(row).model_dump(mode="json") for row in rows]
    return json(listed)


@router.post("", status_code=201, responses=answers(201, ClientCertificateShown, _SHOWN))
async def create_client_certificate(
    request: Request, creating: CreateDep, body: Annotated[ClientCertificateWrite, Body()]
) -> Response:
    """Keep a certificate for the hosts that it matches; runs show it from their next one on."""
    # An encrypted key takes a while to open, which would hold up everyone else.
    expires_ms = await asyncio.to_thread(
        expires_ms_of, cert=body.cert, key=body.key, passphrase=body.passphrase, ca=body.ca
    )
    ignored = ignored_header(await request.json(), body)

    def change(connection: Connection, now_ms: int) -> Changed:
        keeping = Keeping(creating.account_id, now_ms, creating.vault)
        row = create(connection, keeping, body, expires_ms=expires_ms)
        answer = json_model(render(row), status=201, headers=ignored)
        return Changed(answer=answer, resource_id=row.id, fields=sent_fields(body))

    return await creating.make(change)


@router.get(ONE, responses=answers(200, ClientCertificateShown, _SHOWN, 404))
async def read_client_certificate(
    certificate_id: CertificateId, caller: CallerDep, backend: BackendDep
) -> Response:
    """Read a client certificate."""
    row = await backend.database.read(
        lambda connection: find(connection, caller.account_id, certificate_id)
    )
    return json_model(render(row))


@router.delete(ONE, status_code=204, responses=answers(204, None, "It is gone.", 404))
async def delete_client_certificate(certificate_id: CertificateId, changing: ChangeDep) -> Response:
    """Delete a client certificate; jobs that agents hold already have it still."""

    def change(connection: Connection, _now_ms: int) -> Changed:
        delete(connection, changing.account_id, certificate_id)
        return gone(certificate_id)

    return await changing.make(change)


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
