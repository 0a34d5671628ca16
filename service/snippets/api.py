"""`/v1/snippets`: code that several checks share."""

from typing import Annotated, Final

from fastapi import Body, Path
from pydantic import TypeAdapter
from sqlalchemy import Connection
from starlette.responses import Response

from service.checks import actions as checks
from service.checks import resolve
from service.groups import actions as groups
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.errors import ConflictError
from service.http.mutations import (
    Changed,
    ChangeDep,
    CreateDep,
    PartialBody,
    changed_fields,
    complete_body,
    describe_change,
    sent_fields,
)
from service.http.responses import PageDep, page_of
from service.http.routing import ONE, answers, json_model, keyed_operations
from service.http.validation import ignored_header
from service.snippets import store
from service.snippets.actions import find
from service.snippets.model import SnippetRow, SnippetShown, SnippetWrite, render
from service.vault.encryption import Scope

router = keyed_operations("Snippets", prefix="/v1/snippets")

_READER: Final = TypeAdapter(SnippetWrite)
SnippetId = Annotated[int, Path(alias="id", ge=1, le=(1 << 63) - 1)]


@router.get("", responses=page_of(list[SnippetShown], "A page of snippets, oldest first."))
async def list_snippets(caller: CallerDep, backend: BackendDep, page: PageDep) -> Response:
    """List snippets."""
    rows = await backend.database.read(
        lambda c: store.list_page(c, caller.account_id, limit=page.one_more, offset=page.offset)
    )
    return page.answer(rows, lambda row: render(row).model_dump(mode="json"))


@router.post("", status_code=201, responses=answers(201, SnippetShown, "The snippet.", 409))
async def create_snippet(creating: CreateDep, body: Annotated[SnippetWrite, Body()]) -> Response:
    """Create a snippet."""
    ignored = await creating.ignored_fields(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        row = create(connection, scope, body)
        answer = json_model(render(row), status=201, headers=ignored)
        return Changed(answer=answer, resource_id=str(row.id), fields=sent_fields(body))

    return await creating.make(change)


@router.get(ONE, responses=answers(200, SnippetShown, "The snippet.", 404))
async def read_snippet(snippet_id: SnippetId, caller: CallerDep, backend: BackendDep) -> Response:
    """Read a snippet."""
    row = await backend.database.read(lambda c: find(c, caller.account_id, snippet_id))
    return json_model(render(row))


@router.put(
    ONE,
    responses=answers(200, SnippetShown, "The snippet.", 404, 409),
    openapi_extra=describe_change(SnippetWrite),
)
async def replace_snippet(
    snippet_id: SnippetId, changing: ChangeDep, sent: PartialBody
) -> Response:
    """Change a snippet; what is omitted stays, and checks use it from their next run on."""

    def change(connection: Connection, scope: Scope) -> Changed:
        before = render(find(connection, scope.account_id, snippet_id))
        body = complete_body(_READER, sent, before.model_dump(mode="json", by_alias=True))
        row = replace(connection, scope, snippet_id, body)
        fields = changed_fields(before.model_dump(), render(row).model_dump())
        answer = json_model(render(row), headers=ignored_header(sent, body))
        return Changed(answer=answer, resource_id=str(row.id), fields=fields)

    return await changing.make(change)


@router.delete(ONE, status_code=204, responses=answers(204, None, "Deleted.", 404, 409))
async def delete_snippet(snippet_id: SnippetId, changing: ChangeDep) -> Response:
    """Delete a snippet; refused while it is the setup or teardown of a check."""
    return await changing.delete(str(snippet_id), lambda c, scope: delete(c, scope, snippet_id))


def create(connection: Connection, scope: Scope, body: SnippetWrite) -> SnippetRow:
    """Make a snippet; scripts that import its name find it from their next run on.

    Raises:
        ConflictError: the account has one of this name.
    """
    _require_free(connection, scope.account_id, body.name, but=None)
    row = {"account_id": scope.account_id, "name": body.name, "script": body.script}
    snippet_id = store.add(connection, {**row, "created_ms": scope.now_ms, "updated_ms": None})
    resolve.refresh_specs(connection, scope.account_id, vault=scope.vault)
    return find(connection, scope.account_id, snippet_id)


def replace(
    connection: Connection, scope: Scope, snippet_id: int, body: SnippetWrite
) -> SnippetRow:
    """Change a snippet; the checks that use it run with the new one from their next run on.

    Raises:
        NotFoundError: the account has no such snippet.
        ConflictError: another one has this name.
    """
    find(connection, scope.account_id, snippet_id)
    _require_free(connection, scope.account_id, body.name, but=snippet_id)
    values = {"name": body.name, "script": body.script, "updated_ms": scope.now_ms}
    store.change(connection, snippet_id, values)
    resolve.refresh_specs(connection, scope.account_id, vault=scope.vault)
    return find(connection, scope.account_id, snippet_id)


def delete(connection: Connection, scope: Scope, snippet_id: int) -> None:
    """Forget a snippet. Scripts that import it by name fail from their next run on.

    Raises:
        NotFoundError: the account has no such snippet.
        ConflictError: it is a phase of a check or a group.
    """
    row = find(connection, scope.account_id, snippet_id)
    uses, names = checks.find_snippet_users(connection, scope.account_id, snippet_id)
    if uses:
        shown = checks.format_users(uses, names)
        raise ConflictError(
            f"The snippet {row.name} is the setup or teardown of {uses} checks ({shown});"
            " change or delete them first."
        )
    if of_groups := groups.find_snippet_users(connection, scope.account_id, snippet_id):
        raise ConflictError(
            f"The snippet {row.name} is the setup or teardown of the check group {of_groups[0]};"
            " change that first."
        )
    store.remove(connection, snippet_id)
    resolve.refresh_specs(connection, scope.account_id, vault=scope.vault)


def _require_free(connection: Connection, account_id: str, name: str, *, but: int | None) -> None:
    if store.find_id(connection, account_id, name) not in (None, but):
        raise ConflictError(f"A snippet {name} already exists; use another name.")
