"""`/groups/{id}`: the checks of a group, as the overview lists them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.groups import actions as groups
from service.groups.model import GroupRow
from service.http.errors import NotFoundError
from service.locations import actions as locations
from service.overview import actions as overview
from service.overview.model import CheckState, Wanted
from service.web.overview.check_list import Listed, list_values, read_asked, read_list
from service.web.overview.list_address import Asked
from service.web.page_routing import Pages
from service.web.visit import Visit


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The page of a group, and its list alone."""
    return (pages.show("/groups/{id}", _show), pages.show("/groups/{id}/checks", _show_list))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """What the head of the page says."""

    id: int
    name: str
    doc: Mapping[str, Any]
    counts: Mapping[CheckState, int]
    """How many of its checks stand how."""
    places: Sequence[str]
    """The names of the locations that it gives to its checks."""

    @property
    def total(self) -> int:
        """All its checks."""
        return sum(self.counts.values())


async def _show(visit: Visit) -> Response:
    return await _answer(visit, "group.html", live="/live")


async def _show_list(visit: Visit) -> Response:
    return await _answer(visit, "overview_list.html")


async def _answer(visit: Visit, template: str, **values: object) -> Response:
    def read(connection: Connection) -> tuple[Asked, Listed, _Group]:
        row = groups.find(connection, visit.account_id, _number_of(visit))
        asked = read_asked(connection, visit)
        wanted = replace(asked.wanted, group_id=row.id)
        asked = replace(asked, wanted=wanted, home=f"/groups/{row.id}")
        return asked, read_list(connection, visit, asked), _describe(connection, visit, row)

    asked, listed, group = await visit.read(read)
    is_part = template == "overview_list.html"
    shown = {**list_values(asked, listed, is_part=is_part), **values, "group": group}
    return visit.page(template, **shown)


def _describe(connection: Connection, visit: Visit, row: GroupRow) -> _Group:
    found = overview.count_headings(
        connection, visit.account_id, Wanted(group_id=row.id), now_ms=visit.now_ms(connection)
    )
    known = locations.list_all(connection, visit.account_id)
    slugs = row.doc.get("privateLocations") or ()
    return _Group(
        id=row.id,
        name=row.name,
        doc=row.doc,
        counts=found.get("", {}),
        places=[one.name for one in known if one.slug_name in slugs],
    )


def _number_of(visit: Visit) -> int:
    """The number of the group.

    Raises:
        NotFoundError: it is no number.
    """
    text = str(visit.request.path_params["id"])
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise NotFoundError(f"There is no check group {text[:100]}.")
    return int(text)
