"""`/checks/{id}/link`, `/groups/{id}/link`: the address that runs a check or a group."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.triggers.links import MAX_WAIT_S
from service.web.forms.deletion import Deletion, ask_to_delete
from service.web.page_routing import Pages
from service.web.visit import Visit

_NOT_FOUND: Final = 404
_UNKNOWN: Final = "tr_\N{HORIZONTAL ELLIPSIS}"
"""Stands for a token that is not shown any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """What a link runs, and where that is found."""

    noun: str
    place: str
    """What the page is called that `home` leads to."""
    home: str
    path: str
    """What its pages begin with."""
    public: str
    """What its link begins with; the API has it below `/v1`, and its trigger by the same name."""
    back: str
    """The page that leads to its link."""


_KINDS: Final = (
    _Kind(
        noun="check",
        place="Checks",
        home="/",
        path="/checks/{id}",
        public="/checks",
        back="/checks/{id}?tab=settings",
    ),
    _Kind(
        noun="group",
        place="Groups",
        home="/groups",
        path="/groups/{id}",
        public="/check-groups",
        back="/groups/{id}/edit",
    ),
)


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The link of a check and of a group: made, replaced, deleted."""
    return tuple(route for kind in _KINDS for route in _routes_of(pages, kind))


def _routes_of(pages: Pages, kind: _Kind) -> tuple[BaseRoute, ...]:
    link = _LinkPages(kind)
    path = f"{kind.path}/link"
    return (
        pages.show(path, link.show),
        pages.change(path, link.create),
        pages.show(f"{path}/delete", link.show_delete),
        pages.change(f"{path}/delete", link.delete),
    )


class _LinkPages:
    def __init__(self, kind: _Kind) -> None:
        self._kind = kind

    async def show(self, visit: Visit) -> Response:
        """The link, whole right after it was made."""
        kind, owner = self._kind, await self._find_owner(visit)
        return visit.page_with_key(
            "run_link.html",
            of=self._key_of(visit),
            kind=kind,
            owner=owner,
            here=self._at(visit, f"{kind.path}/link"),
            back=self._at(visit, kind.back),
            trigger=await self._find_trigger(visit),
            before_token=f"{visit.base_url}{self._at(visit, kind.public + '/{id}')}/trigger/",
            unknown=_UNKNOWN,
            waits_s=MAX_WAIT_S,
        )

    async def create(self, visit: Visit) -> Response:
        """Make the link; one that was there runs nothing any more."""
        answer = await visit.call(f"POST {self._trigger_path(visit)}")
        if answer.is_error:
            raise answer.refusal
        here = self._at(visit, f"{self._kind.path}/link")
        return visit.go_with_key(here, answer.body["token"], of=self._key_of(visit))

    async def show_delete(self, visit: Visit) -> Response:
        """Ask whether the link shall really end."""
        return await self._delete_page(visit, problem="")

    async def delete(self, visit: Visit) -> Response:
        """End the link."""
        answer = await visit.call(f"DELETE {self._trigger_path(visit)}")
        if answer.is_error and answer.status != _NOT_FOUND:
            return await self._delete_page(visit, problem=answer.message)
        return visit.go(self._at(visit, f"{self._kind.path}/link"))

    async def _delete_page(self, visit: Visit, *, problem: str) -> Response:
        kind, owner = self._kind, await self._find_owner(visit)
        deletion = Deletion(
            noun="link",
            name=f"the link of {owner['name']}",
            loss=f"Whoever calls it gets 404 at once, and the {kind.noun} is no longer run by it.",
            place=kind.place,
            list_path=kind.home,
            back=self._at(visit, f"{kind.path}/link"),
        )
        return ask_to_delete(visit, deletion, problem=problem)

    async def _find_owner(self, visit: Visit) -> Any:
        return await visit.find(self._at(visit, f"/v1{self._kind.public}/{{id}}"))

    async def _find_trigger(self, visit: Visit) -> Any:
        """The trigger without its token. None: there is none."""
        answer = await visit.look(f"GET {self._trigger_path(visit)}")
        return None if answer.is_error else answer.body

    def _trigger_path(self, visit: Visit) -> str:
        return self._at(visit, f"/v1/triggers{self._kind.public}/{{id}}")

    def _key_of(self, visit: Visit) -> str:
        return f"{self._kind.noun}-{visit.request.path_params['id']}"

    def _at(self, visit: Visit, path: str) -> str:
        return path.replace("{id}", quote(visit.request.path_params["id"], safe=""))
