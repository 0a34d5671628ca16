"""`/v1/client-certificates`: certificates that runs show to hosts that ask for them."""

import asyncio
from typing import Annotated, Any

from fastapi import Body, Path
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from service.certificates import actions, changes
from service.certificates.bodies import ClientCertificateShown, ClientCertificateWrite
from service.certificates.changes import Keeping
from service.certificates.pem import expires_ms_of
from service.certificates.views import shown
from service.http.auth import CallerDep
from service.http.backend import BackendDep
from service.http.changing import Changed, ChangeDep, CreateDep, gone, sent_fields
from service.http.ignored import ignored_header
from service.http.operations import keyed_operations
from service.http.routes import ONE, answers, json, json_model
from service.http.strict import NO_NUL

router = keyed_operations("Client certificates", prefix="/v1/client-certificates")

CertificateId = Annotated[str, Path(alias="id", pattern=NO_NUL, max_length=200)]
_SHOWN = "The certificate, without its key and passphrase."


@router.get(
    "", responses=answers(200, list[ClientCertificateShown], "All certificates, newest first.")
)
async def list_client_certificates(caller: CallerDep, backend: BackendDep) -> Response:
    """List the client certificates."""
    rows = await backend.database.read(
        lambda connection: actions.of_account(connection, caller.account_id)
    )
    listed: list[dict[str, Any]] = [shown(row).model_dump(mode="json") for row in rows]
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
        row = changes.create(connection, keeping, body, expires_ms=expires_ms)
        answer = json_model(shown(row), status=201, headers=ignored)
        return Changed(answer=answer, resource_id=row.id, fields=sent_fields(body))

    return await creating.make(change)


@router.get(ONE, responses=answers(200, ClientCertificateShown, _SHOWN, 404))
async def read_client_certificate(
    certificate_id: CertificateId, caller: CallerDep, backend: BackendDep
) -> Response:
    """Read a client certificate."""
    row = await backend.database.read(
        lambda connection: actions.find(connection, caller.account_id, certificate_id)
    )
    return json_model(shown(row))


@router.delete(ONE, status_code=204, responses=answers(204, None, "It is gone.", 404))
async def delete_client_certificate(certificate_id: CertificateId, changing: ChangeDep) -> Response:
    """Delete a client certificate; jobs that agents hold already have it still."""

    def change(connection: Connection, _now_ms: int) -> Changed:
        actions.delete(connection, changing.account_id, certificate_id)
        return gone(certificate_id)

    return await changing.make(change)
