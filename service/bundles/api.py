"""`/v1/code-bundles`: people send the code of suites; `/agent/v1/bundles`: agents fetch it."""

from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import Depends, Path
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from contract.agent_api import LINKS_HEADER
from contract.scripts import sha256_problem
from service.bundles import bundles
from service.bundles.files import BundleFiles
from service.bundles.model import MAX_BUNDLE_BYTES, BundleRow, BundleShown
from service.checks import actions as checks
from service.db.engine import Database
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.errors import InvalidError, NotFoundError
from service.http.mutations import Changed, ChangeDep
from service.http.responses import file_answer
from service.http.routing import answers, json_model, keyed_operations
from service.http.times import moment
from service.sessions import actions as sessions
from service.vault.encryption import Scope

PREFIX: Final = "/v1/code-bundles"
"""Bodies below it are streams, and not read whole before their route."""
_MEDIA_TYPE: Final = "application/gzip"
_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "description": f"A tar.gz of at most {MAX_BUNDLE_BYTES} bytes.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_ONE: Final = "/{sha256}"

router = keyed_operations("Code bundles", prefix=PREFIX)


def _require_sha256(
    sha256: Annotated[
        str,
        Path(
            description="SHA-256 of the whole file, in lower-case hexadecimal digits.",
            json_schema_extra={"pattern": "^[0-9a-f]{64}$"},
        ),
    ],
) -> str:
    if problem := sha256_problem(sha256):
        raise InvalidError(f'"sha256" {problem}.', keys=("sha256",), source="path")
    return sha256


Sha256Dep = Annotated[str, Depends(_require_sha256)]


@router.put(
    _ONE,
    status_code=201,
    openapi_extra=_BODY,
    responses=answers(201, BundleShown, "It is stored; sending it again changes nothing.", 507),
)
async def put_code_bundle(
    sha256: Sha256Dep, request: Request, changing: ChangeDep, backend: BackendDep
) -> Response:
    """Upload the tar.gz of a Playwright suite; the path contains its hash."""

    def change(connection: Connection, scope: Scope, *, size_bytes: int) -> Changed:
        row = BundleRow(sha256=sha256, size_bytes=size_bytes, created_ms=scope.now_ms)
        bundles.put(connection, scope.account_id, row)
        return Changed(answer=json_model(_render(row), status=201), resource_id=sha256)

    return await backend.bundles.keep(
        changing.account_id,
        sha256,
        request.stream(),
        note=lambda size: changing.make(partial(change, size_bytes=size)),
    )


@router.get(_ONE, responses=answers(200, BundleShown, "The bundle exists.", 404))
async def read_code_bundle(sha256: Sha256Dep, caller: CallerDep, backend: BackendDep) -> Response:
    """Check whether a bundle was uploaded."""
    row = await backend.database.read(lambda c: bundles.find(c, caller.account_id, sha256))
    return json_model(_render(row))


class BundleDownloads:
    """Gives agents the bundles of the checks that run at their location."""

    def __init__(self, database: Database, files: BundleFiles) -> None:
        self._database = database
        self._files = files

    async def get(self, request: Request, location_id: str) -> Response:
        """A bundle's bytes, whole or in part; or a link to them, for whoever takes links.

        Raises:
            NotFoundError: no check of the location runs it.
            ObjectStoreError: the bucket does not answer.
        """
        sha256 = str(request.path_params["sha256"])
        account_id = await self._database.read(
            lambda c: (
                checks.find_bundle_owner(c, location_id, sha256)
                or sessions.find_bundle_owner(c, location_id, sha256)
            )
        )
        if account_id and LINKS_HEADER in request.headers:
            link = await self._files.sign(account_id, sha256)
            if link is not None:
                headers = {"location": link, "cache-control": "no-store"}
                return Response(status_code=HTTPStatus.TEMPORARY_REDIRECT, headers=headers)
        found = await self._files.find(account_id, sha256) if account_id else None
        if found is None:
            raise NotFoundError("No check of this location runs a bundle with this SHA-256.")
        return file_answer(request, found, sha256=sha256, media_type=_MEDIA_TYPE)


def _render(row: BundleRow) -> BundleShown:
    return BundleShown(
        code_bundle_path=row.sha256,
        size_bytes=row.size_bytes,
        created_at=moment(row.created_ms),
    )
