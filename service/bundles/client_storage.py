"""`/next/checkly-storage`: the established service's clients send and fetch files."""

from functools import partial
from typing import Annotated, Any, Final

from fastapi import Body, Header
from pydantic import Field
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from contract.scripts import sha256_problem
from service.bundles import bundles
from service.bundles.files import SpooledBundle
from service.bundles.model import CODE, SNAPSHOT, BundleRow, Content
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.errors import InvalidError, NotFoundError
from service.http.mutations import Changed, ChangeDep, Mutation
from service.http.responses import file_answer
from service.http.routing import answers, json_model, keyed_operations
from service.http.schema import RequestModel, ResponseModel, Text
from service.http.times import Moment, moment
from service.sessions.ad_hoc.written_snapshots import is_written_key, open_written
from service.vault.encryption import Scope

_PREFIX: Final = "/next/checkly-storage"
_BINARY: Final = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_MEDIA_TYPE: Final = "application/octet-stream"
UPLOADS: Final = (f"{_PREFIX}/upload",)
"""Bodies of paths that begin so are streams, and not read whole before their route."""

router = keyed_operations("Code bundles", prefix=_PREFIX)


class KeyWrite(RequestModel):
    """What an upload was answered with."""

    key: Annotated[Text, Field(min_length=1, max_length=1000)]


class StoredCodeShown(ResponseModel):
    """A code bundle."""

    key: str
    """The `codeBundlePath` of suites that run it: its SHA-256."""
    last_modified: Moment
    """When it was last uploaded."""
    content_length: int
    """Its bytes."""
    checksum_sha256: str
    """In lower-case hexadecimal digits."""


class StoredSnapshotShown(ResponseModel):
    """A snapshot."""

    key: str
    """Names it in the `snapshots` of browser checks."""


_EXAMPLE: Final = {"requestBody": {"content": {"application/json": {"example": {"key": "0" * 64}}}}}


def _body(content: Content) -> dict[str, Any]:
    description = f"The bytes of a {content.noun}, at most {content.limit_bytes}."
    return {"requestBody": {"required": True, "description": description, "content": _BINARY}}


@router.post(
    "/upload-code-bundle",
    openapi_extra=_body(CODE),
    responses=answers(200, StoredCodeShown, "It is stored.", 507),
)
async def upload_code_bundle(
    request: Request,
    changing: ChangeDep,
    checksum: Annotated[
        str | None,
        Header(
            alias="x-bundle-checksum-sha256",
            description="SHA-256 that the body must have, in lower-case hexadecimal digits.",
        ),
    ] = None,
) -> Response:
    """Upload the tar.gz of a Playwright suite, as `PUT /v1/code-bundles/{sha256}` does."""
    async with changing.backend.bundles.spool(request.stream()) as spooled:
        if checksum is not None and checksum.strip().lower() != spooled.sha256:
            raise InvalidError(
                f"The body has the SHA-256 {spooled.sha256}, which is not the one in"
                " x-bundle-checksum-sha256; send the bytes as they were hashed.",
                keys=("x-bundle-checksum-sha256",),
                source="headers",
            )
        row = await _keep(changing, spooled, CODE)
    return json_model(_render(row))


@router.post(
    "/peek-code-bundle",
    openapi_extra=_EXAMPLE,
    responses=answers(200, StoredCodeShown, "The bundle exists.", 404),
)
async def peek_code_bundle(
    body: Annotated[KeyWrite, Body()], caller: CallerDep, backend: BackendDep
) -> Response:
    """Check whether a bundle was uploaded."""
    row = await backend.database.read(lambda c: bundles.find(c, caller.account_id, body.key))
    return json_model(_render(row))


@router.post(
    "/upload",
    openapi_extra=_body(SNAPSHOT),
    responses=answers(200, StoredSnapshotShown, "It is stored.", 507),
)
async def upload_snapshot(request: Request, changing: ChangeDep) -> Response:
    """Upload a snapshot, with which a browser check compares what it sees.

    One that no check names is deleted a day after its upload.
    """
    async with changing.backend.bundles.spool(request.stream(), content=SNAPSHOT) as spooled:
        row = await _keep(changing, spooled, SNAPSHOT)
    return json_model(StoredSnapshotShown(key=row.sha256))


@router.post(
    "/download",
    openapi_extra=_EXAMPLE,
    responses={
        **answers(200, None, "The bytes.", 404),
        200: {"description": "The bytes.", "content": _BINARY},
    },
)
async def download_snapshot(
    body: Annotated[KeyWrite, Body()], request: Request, caller: CallerDep, backend: BackendDep
) -> Response:
    """Download a snapshot, sent or written anew by the run of a test, or a code bundle."""
    account_id, key = caller.account_id, body.key
    if is_written_key(key):
        asset, written = await open_written(backend, account_id, key)
        return file_answer(request, written, sha256=asset.artifact.sha256, media_type=_MEDIA_TYPE)
    row = None
    if sha256_problem(key) is None:
        row = await backend.database.read(lambda c: bundles.find_kept(c, account_id, key))
    found = await backend.bundles.find(account_id, key) if row else None
    if found is None:
        raise NotFoundError("There is no file with this key; upload it first.")
    return file_answer(request, found, sha256=key, media_type=_MEDIA_TYPE)


async def _keep(changing: Mutation, spooled: SpooledBundle, content: Content) -> BundleRow:
    """Store what was read; gives its row."""
    stored: list[BundleRow] = []

    def change(connection: Connection, scope: Scope, *, size_bytes: int) -> Changed:
        row = BundleRow(
            sha256=spooled.sha256,
            size_bytes=size_bytes,
            created_ms=scope.now_ms,
            is_snapshot=content is SNAPSHOT,
        )
        bundles.put(connection, scope.account_id, row)
        stored[:] = [row]
        return Changed(answer=Response(), resource_id=row.sha256)

    await changing.backend.bundles.keep(
        changing.account_id,
        spooled.sha256,
        spooled.stream(),
        note=lambda size: changing.make(partial(change, size_bytes=size)),
        content=content,
    )
    return stored[0]


def _render(row: BundleRow) -> StoredCodeShown:
    return StoredCodeShown(
        key=row.sha256,
        last_modified=moment(row.created_ms),
        content_length=row.size_bytes,
        checksum_sha256=row.sha256,
    )
