"""Pages of a list: `limit` and `page`, and the address of the next one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from service.http.backend import BackendDep
from service.http.routes import answers, json
from service.http.unreadable import OPENAPI, Items

RowT = TypeVar("RowT")

_LINK: Final = {
    "description": 'Where there are more: the address of the next page, as in `<…>; rel="next"`.',
    "schema": {"type": "string"},
}


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is wanted."""

    limit: int
    number: int
    """From 1."""
    next_url: str
    """Of the page after this one."""

    @property
    def offset(self) -> int:
        """How many items stand before it."""
        return (self.number - 1) * self.limit

    @property
    def one_more(self) -> int:
        """What to ask the database for: one item more tells whether there is a next page."""
        return self.limit + 1

    def answer(self, found: Sequence[RowT], show: Callable[[RowT], Any]) -> Response:
        """The page as its answer; `found` has `one_more` items if there is a next one."""
        return self._answer([show(one) for one in found[: self.limit]], found, {})

    def answer_of(self, found: Sequence[RowT], items: Items[RowT]) -> Response:
        """The same of items of which something stored may be unreadable."""
        shown, told = items.shown(found[: self.limit])
        return self._answer(shown, found, told)

    def _answer(
        self, shown: Sequence[Any], found: Sequence[object], told: Mapping[str, str]
    ) -> Response:
        link = {"link": f'<{self.next_url}>; rel="next"'} if len(found) > self.limit else {}
        return json(shown, headers={**told, **link})


def _page(
    request: Request,
    backend: BackendDep,
    limit: Annotated[int, Query(ge=1, le=100, description="Items on a page.")] = 10,
    page: Annotated[int, Query(ge=0, le=1_000_000, description="From 1; 0 is taken for 1.")] = 1,
) -> Page:
    number = max(page, 1)
    url = request.url.include_query_params(limit=limit, page=number + 1)
    return Page(limit, number, f"{backend.base_url(request)}{url.path}?{url.query}")


PageDep = Annotated[Page, Depends(_page)]


def page_of(model: Any, description: str, *also: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI entries of an operation that answers a page."""
    entries = answers(200, model, description, *also)
    entries[200]["headers"] = {"Link": _LINK}
    return entries


def page_of_sealed(model: Any, description: str, *also: int) -> dict[int | str, dict[str, Any]]:
    """The same where something of an item may be unreadable."""
    entries = page_of(model, description, *also)
    entries[200]["headers"] |= OPENAPI
    return entries
