"""`/v1/variables`: variables and secrets that all checks of an account have."""

from operator import attrgetter
from typing import Annotated, Final

from fastapi import Body, Path
from pydantic import TypeAdapter
from sqlalchemy import Connection
from starlette.responses import Response

from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
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
from service.http.responses import Items, PageOrAllDep, page_of_sealed
from service.http.routing import answers, json_model, keyed_operations
from service.http.schema import NO_NUL
from service.http.validation import ignored_header
from service.variables import actions, store
from service.variables.model import Owner
from service.variables.schemas import (
    VariableChange,
    VariableShown,
    VariableWrite,
    compare,
    render,
    render_doc,
)
from service.vault.encryption import Scope, Viewer
from service.vault.texts import HIDDEN

router = keyed_operations("Variables", prefix="/v1/variables")

_READER: Final = TypeAdapter(VariableChange)
_ONE = "/{key}"
# Wider than a key may be: what cannot be one is not there.
VariableKey = Annotated[str, Path(alias="key", pattern=NO_NUL, max_length=1000)]
_SHOWN = "The variable; the value of a secret is empty."


@router.get("", responses=page_of_sealed(list[VariableShown], "A page of variables, by key."))
async def list_variables(caller: CallerDep, backend: BackendDep, page: PageOrAllDep) -> Response:
    """List the account's variables and secrets: all of them, unless a page is asked for."""
    owner = Owner.account(caller.account_id)
    rows = await backend.database.read(
        lambda c: store.list_page(c, owner, limit=page.one_more, offset=page.offset)
    )
    viewer = Viewer(backend.vault, may_write=caller.may_write)
    items = Items(
        show=lambda row: render_doc(row, viewer),
        hide=lambda row: render_doc(row, viewer.hiding),
        name=attrgetter("key"),
    )
    return page.answer_of(rows, items)


@router.post("", status_code=201, responses=answers(201, VariableShown, _SHOWN, 409))
async def create_variable(creating: CreateDep, body: Annotated[VariableWrite, Body()]) -> Response:
    """Create a variable or a secret for all checks of the account, from their next run on."""
    ignored = await creating.ignored_fields(body)

    def change(connection: Connection, scope: Scope) -> Changed:
        row = actions.create(connection, scope, body)
        answer = json_model(render(row, Viewer.writer(scope.vault)), status=201, headers=ignored)
        return Changed(answer=answer, resource_id=row.key, fields=sent_fields(body))

    return await creating.make(change)


@router.get(_ONE, responses=answers(200, VariableShown, _SHOWN, 404))
async def read_variable(key: VariableKey, caller: CallerDep, backend: BackendDep) -> Response:
    """Read a variable; for a secret, all but its value."""
    row = await backend.database.read(lambda c: actions.find(c, caller.account_id, key))
    return json_model(render(row, Viewer(backend.vault, may_write=caller.may_write)))


@router.put(
    _ONE,
    responses=answers(200, VariableShown, _SHOWN, 404, 409),
    openapi_extra=describe_change(VariableWrite),
)
async def replace_variable(key: VariableKey, changing: ChangeDep, sent: PartialBody) -> Response:
    """Change or rename a variable; what is omitted stays.

    A secret that stays one keeps its value if that is empty.
    """

    def change(connection: Connection, scope: Scope) -> Changed:
        before = actions.find(connection, scope.account_id, key)
        stored = {"value": HIDDEN, "locked": before.locked, "secret": before.secret}
        body = complete_body(_READER, sent, stored)
        row = actions.replace_one(connection, scope, key, body)
        fields = changed_fields(compare(before, scope.vault), compare(row, scope.vault))
        headers = ignored_header(sent, body)
        answer = json_model(render(row, Viewer.writer(scope.vault)), headers=headers)
        return Changed(answer=answer, resource_id=key, fields=fields)

    return await changing.make(change)


@router.delete(_ONE, status_code=204, responses=answers(204, None, "Deleted.", 404))
async def delete_variable(key: VariableKey, changing: ChangeDep) -> Response:
    """Delete a variable; templates that name it fail from their next run on."""
    return await changing.delete(key, lambda c, scope: actions.delete(c, scope.account_id, key))
