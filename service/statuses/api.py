"""`/v1/check-statuses`: how checks stand by their newest results."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import Path
from sqlalchemy import Connection
from starlette.responses import Response

from service.checks import actions as checks
from service.checks.model import CheckName
from service.http.auth import CallerDep
from service.http.backend import Backend, BackendDep
from service.http.operations import keyed_operations
from service.http.routes import answers, json, json_fast
from service.http.strict import NO_NUL
from service.results import actions as results
from service.statuses.model import StatusShown
from service.statuses.views import status_shown

router = keyed_operations("Check statuses", prefix="/v1/check-statuses")

CheckId = Annotated[str, Path(alias="checkId", pattern=NO_NUL, max_length=200)]
_ONE: Final = "/{checkId}"
DAY_MS: Final = 86_400_000


@router.get("", responses=answers(200, list[StatusShown], "Of all checks, the oldest first."))
async def list_check_statuses(caller: CallerDep, backend: BackendDep) -> Response:
    """List the statuses of all checks of the account, in one answer."""

    def query(connection: Connection) -> Response:
        # The answer is written here, in the reader's thread: of 10,000 checks it has 3.5 MB.
        return json_fast(
            _statuses(connection, backend, checks.names(connection, caller.account_id))
        )

    return await backend.database.read(query)


@router.get(_ONE, responses=answers(200, StatusShown, "The status.", 404))
async def read_check_status(check_id: CheckId, caller: CallerDep, backend: BackendDep) -> Response:
    """Read the status of a check."""

    def query(connection: Connection) -> dict[str, Any]:
        named = checks.name_of(connection, caller.account_id, check_id)
        return _statuses(connection, backend, [named])[0]

    return json(await backend.database.read(query))


def _statuses(
    connection: Connection, backend: Backend, named: Sequence[CheckName]
) -> list[dict[str, Any]]:
    ids = [one.id for one in named]
    newest = results.standings(connection, ids)
    from_ms = backend.clock.now_ms(connection) - DAY_MS
    extremes = results.extremes(connection, ids, from_ms=from_ms)
    return [status_shown(one, newest.get(one.id), extremes.get(one.id)) for one in named]
