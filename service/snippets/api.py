"""`/v1/snippets`: code that several checks share."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from service.http.auth import CallerDep
from service.http.backend import BackendDep
from service.http.ignored import ignored_header
from service.http.paging import PageDep
from service.http.routes import ONE, answers, json, json_model
from service.snippets import actions, changes
from service.snippets.model import SnippetRow, SnippetShown, SnippetWrite
from service.snippets.views import shown

router = APIRouter(prefix="/v1/snippets", tags=["snippets"])

SnippetId = Annotated[int, Path(alias="id", ge=1, le=(1 << 63) - 1)]


@router.get("", responses=answers(200, list[SnippetShown], "A page of snippets, oldest first."))
async def list_snippets(caller: CallerDep, backend: BackendDep, page: PageDep) -> Response:
    """List snippets."""
    rows = await backend.database.read(
        lambda connection: actions.page(
            connection, caller.account_id, limit=page.limit, offset=page.offset
        )
    )
    listed: list[dict[str, Any]] = [shown(row).model_dump(mode="json") for row in rows]
    return json(listed)


@router.post("", status_code=201, responses=answers(201, SnippetShown, "The snippet.", 409))
async def create_snippet(
    request: Request, caller: CallerDep, backend: BackendDep, body: Annotated[SnippetWrite, Body()]
) -> Response:
    """Create a snippet."""

    def change(connection: Connection) -> SnippetRow:
        now_ms = backend.clock.now_ms(connection)
        return changes.create(connection, caller.account_id, body, now_ms=now_ms)

    answer = json_model(shown(await backend.database.write(change)), status=201)
    answer.headers.update(ignored_header(await request.json(), body))
    return answer


@router.get(ONE, responses=answers(200, SnippetShown, "The snippet.", 404))
async def read_snippet(snippet_id: SnippetId, caller: CallerDep, backend: BackendDep) -> Response:
    """Read a snippet."""
    row = await backend.database.read(
        lambda connection: actions.find(connection, caller.account_id, snippet_id)
    )
    return json_model(shown(row))


@router.put(ONE, responses=answers(200, SnippetShown, "The snippet.", 404, 409))
async def replace_snippet(
    snippet_id: SnippetId,
    request: Request,
    caller: CallerDep,
    backend: BackendDep,
    body: Annotated[SnippetWrite, Body()],
) -> Response:
    """Change a snippet; checks run with the new one from their next run on."""

    def change(connection: Connection) -> SnippetRow:
        now_ms = backend.clock.now_ms(connection)
        return changes.replace(connection, caller.account_id, snippet_id, body=body, now_ms=now_ms)

    answer = json_model(shown(await backend.database.write(change)))
    answer.headers.update(ignored_header(await request.json(), body))
    return answer


@router.delete(ONE, status_code=204, responses=answers(204, None, "It is gone.", 404, 409))
async def delete_snippet(snippet_id: SnippetId, caller: CallerDep, backend: BackendDep) -> Response:
    """Delete a snippet; refused while it is the setup or teardown of a check."""
    await backend.database.write(
        lambda connection: changes.delete(connection, caller.account_id, snippet_id)
    )
    return Response(status_code=204)
