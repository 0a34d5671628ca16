"""`/v1/badges`: the status of a check as a picture, for pages that show it."""

from typing import Annotated, Any, Final

from fastapi import Depends, Path, Query
from sqlalchemy import Connection
from starlette.responses import Response

from service.badges.picture import Badge, Style, Theme, svg
from service.badges.views import badge, worst
from service.checks import actions as checks
from service.groups import actions as groups
from service.http.auth import CallerDep, MaybeCallerDep
from service.http.backend import BackendDep
from service.http.operations import keyed_operations
from service.http.routes import refusals
from service.http.strict import NO_NUL
from service.results import actions as results

router = keyed_operations("Badges", prefix="/v1/badges")

CheckId = Annotated[str, Path(alias="checkId", pattern=NO_NUL, max_length=200)]
_OF_CHECK: Final = "/checks/{checkId}"
GroupId = Annotated[int, Path(alias="groupId", ge=1, le=(1 << 63) - 1)]
_OF_GROUP: Final = "/groups/{groupId}"
_SVG: Final = "image/svg+xml"
_PICTURE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The badge.", "content": {_SVG: {"schema": {"type": "string"}}}},
    **refusals(404),
}


class _Look:
    """How the badge is to look."""

    def __init__(
        self,
        *,
        style: Style = Style.FLAT,
        theme: Theme = Theme.DEFAULT,
        with_time: Annotated[
            bool, Query(alias="responseTime", description="Add the newest response time.")
        ] = False,
    ) -> None:
        self.style, self.theme, self.with_time = style, theme, with_time

    def answer(self, said: Badge) -> Response:
        """The picture."""
        picture = svg(said, style=self.style, theme=self.theme)
        headers = {"cache-control": "no-cache", "content-security-policy": "sandbox"}
        return Response(picture, media_type=_SVG, headers=headers)


LookDep = Annotated[_Look, Depends(_Look)]


@router.get(_OF_CHECK, response_class=Response, responses=_PICTURE)
async def read_check_badge(
    check_id: CheckId, caller: MaybeCallerDep, backend: BackendDep, look: LookDep
) -> Response:
    """Draw the status of a check. With `BADGE_ACCESS=anyone` it takes no API key."""

    def query(connection: Connection) -> Badge:
        account_id = caller.account_id if caller else checks.owner_of(connection, check_id)
        row = checks.find(connection, account_id or "", check_id)
        newest = results.standings(connection, [check_id]).get(check_id)
        return badge(row.name, newest, with_time=look.with_time)

    return look.answer(await backend.database.read(query))


@router.get(_OF_GROUP, response_class=Response, responses=_PICTURE)
async def read_group_badge(
    group_id: GroupId, caller: CallerDep, backend: BackendDep, look: LookDep
) -> Response:
    """Draw the status of a check group: that of its worst check.

    It takes an API key always: a group's number can be guessed, and a check's id cannot.
    """

    def query(connection: Connection) -> Badge:
        account_id = caller.account_id
        group = groups.find(connection, account_id, group_id)
        members = checks.names_of_group(connection, account_id, group_id)
        newest = results.standings(connection, [member.id for member in members])
        return badge(group.name, worst(newest.values()), with_time=look.with_time)

    return look.answer(await backend.database.read(query))
