"""`/v1/snippets`: code that several checks share."""

from typing import Annotated

from fastapi import Body, Path
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from service.http.auth import CallerDep
from service.http.backend import BackendDep
from service.http.changing import Changed, ChangeDep, CreateDep, changed_fields, gone, sent_fields
from service.http.ignored import ignored_header
from service.http.operations import keyed_operations
from service.http.paging import PageDep, page_of
from service.http.routes import ONE, answers, json_model
from service.snippets import actions, changes
from service.snippets.model import SnippetShown, SnippetWrite
from service.snippets.views import shown
from service.vault.scope import Scope

router = keyed_operations("Snippets", prefix="/v1/snippets")

SnippetId = Annotated[int, Path(alias="id", ge=1, le=(1 << 63) - 1)]


@router.get("", responses=page_of(list[SnippetShown], "A page of snippets, oldest first."))
async def list_snippets(caller: CallerDep, backend: BackendDep, page: PageDep) -> Response:
    """List snippets."""
    rows = await backend.database.read(
        lambda connection: actions.page(
            connection, caller.account_id, limit=page.one_more, offset=page.offset
        )
    )
    return page.answer(rows, lambda row: shown(row).model_dump(mode="json"))


@router.post("", status_code=201, responses=answers(201, SnippetShown, "The snippet.", 409))
async def create_snippet(
    request: Request, creating: CreateDep, body: Annotated[SnippetWrite, Body()]
) -> Response:
    """Create a snippet."""
    ignored = ignored_header(await request.json(), body)

    def change(connection: Connection, now_ms: int) -> Changed:
        scope = Scope(creating.account_id, now_ms, creating.vault)
        row = changes.create(connection, scope, body)
        answer = json_model(shown(row), status=201, headers=ignored)
        return Changed(answer=answer, resource_id=str(row.id), fields=sent_fields(body))

    return await creating.make(change)


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
    changing: ChangeDep,
    body: Annotated[SnippetWrite, Body()],
) -> Response:
    """Change a snippet; checks run with the new one from their next run on."""
    ignored, account_id = ignored_header(await request.json(), body), changing.account_id

    def change(connection: Connection, now_ms: int) -> Changed:
        before = shown(actions.find(connection, account_id, snippet_id))
        scope = Scope(account_id, now_ms, changing.vault)
        row = changes.replace(connection, scope, snippet_id, body)
        fields = changed_fields(before.model_dump(), shown(row).model_dump())
        answer = json_model(shown(row), headers=ignored)
        return Changed(answer=answer, resource_id=str(row.id), fields=fields)

    return await changing.make(change)


@router.delete(ONE, status_code=204, responses=answers(204, None, "It is gone.", 404, 409))
async def delete_snippet(snippet_id: SnippetId, changing: ChangeDep) -> Response:
    """Delete a snippet; refused while it is the setup or teardown of a check."""

    def change(connection: Connection, now_ms: int) -> Changed:
        scope = Scope(changing.account_id, now_ms, changing.vault)
        changes.delete(connection, scope, snippet_id)
        return gone(str(snippet_id))

    return await changing.make(change)
