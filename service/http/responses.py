"""Responses: pages of lists, files, items that cannot be decrypted."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final, Generic, TypeVar

from fastapi import Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from service.http.dependencies import BackendDep
from service.http.errors import UnreadableError
from service.http.routing import answers, json
from service.object_store.model import RemoteObject
from service.object_store.object_response import object_response

RowT = TypeVar("RowT")

HEADER: Final = "x-unreadable-items"
_MOST: Final = 20
"""How many items the header names at most: proxies refuse long headers."""
OPENAPI: Final = {
    HEADER: {
        "description": (
            "Present if stored values cannot be read: the items that have `*********` in their"
            " place. A GET of such an item says what to do."
        ),
        "schema": {"type": "string"},
    }
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Items(Generic[RowT]):
    """How the items of a list are rendered."""

    show: Callable[[RowT], Any]
    """Renders an item; raises `UnreadableError` where a secret cannot be decrypted."""
    hide: Callable[[RowT], Any]
    """Renders an item without its undecryptable secrets."""
    name: Callable[[RowT], str]
    """What the header calls an item; letters, digits, dots, hyphens and underscores."""

    def shown(self, rows: Iterable[RowT]) -> tuple[list[Any], dict[str, str]]:
        """The items, and the header; none where all can be read."""
        found: list[Any] = []
        damaged: list[str] = []
        for row in rows:
            try:
                found.append(self.show(row))
            except UnreadableError:
                found.append(self.hide(row))
                damaged.append(self.name(row))
        return found, _header(damaged)


def _header(names: Sequence[str]) -> dict[str, str]:
    if not names:
        return {}
    more = f", and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return {HEADER: ", ".join(names[:_MOST]) + more}


_LINK: Final = {
    "description": 'Present if there is another page: its URL, as in `<…>; rel="next"`.',
    "schema": {"type": "string"},
}
_CONTENT_RANGE: Final = {
    "description": "The items of the page, counted from 0, and how many there are: `0-9/118`.",
    "schema": {"type": "string"},
}


@dataclass(frozen=True, slots=True)
class Page:
    """The requested part of a list."""

    limit: int
    number: int
    """The page's number, from 1."""
    next_url: str
    """The address of the next page."""

    @property
    def offset(self) -> int:
        """How many items stand before it."""
        return (self.number - 1) * self.limit

    @property
    def one_more(self) -> int:
        """What to ask the database for: one item more tells whether there is a next page."""
        return self.limit + 1

    def answer(
        self, found: Sequence[RowT], show: Callable[[RowT], Any], *, total: int | None = None
    ) -> Response:
        """The page as a response; `found` has `one_more` items if there is a next page.

        `total`: how many items all pages have, for the header Content-Range. None: without it.
        """
        shown = [show(one) for one in found[: self.limit]]
        return self._answer(shown, found, self._content_range(len(shown), total))

    def answer_of(
        self, found: Sequence[RowT], items: Items[RowT], *, total: int | None = None
    ) -> Response:
        """The page as a response, with items that may have undecryptable secrets."""
        shown, headers = items.shown(found[: self.limit])
        return self._answer(shown, found, headers | self._content_range(len(shown), total))

    def _content_range(self, shown: int, total: int | None) -> dict[str, str]:
        if total is None:
            return {}
        part = f"{self.offset}-{self.offset + shown - 1}" if shown else "*"
        return {"content-range": f"{part}/{total}"}

    def _answer(
        self, shown: Sequence[Any], found: Sequence[object], headers: Mapping[str, str]
    ) -> Response:
        link = {"link": f'<{self.next_url}>; rel="next"'} if len(found) > self.limit else {}
        return json(shown, headers={**headers, **link})


def _page(
    request: Request,
    backend: BackendDep,
    limit: Annotated[int, Query(ge=1, le=100, description="Items on a page.")] = 10,
    page: Annotated[int, Query(ge=0, le=1_000_000, description="From 1; 0 means 1.")] = 1,
) -> Page:
    number = max(page, 1)
    url = request.url.include_query_params(limit=limit, page=number + 1)
    return Page(limit, number, f"{backend.base_url(request)}{url.path}?{url.query}")


PageDep = Annotated[Page, Depends(_page)]
_ALL: Final = 1_000_000


def _page_or_all(
    request: Request,
    backend: BackendDep,
    limit: Annotated[
        int | None,
        Query(ge=1, le=100, description="Items on a page. Without it and `page`: all items."),
    ] = None,
    page: Annotated[int | None, Query(ge=0, le=1_000_000, description="From 1; 0 means 1.")] = None,
) -> Page:
    if limit is None and page is None:
        return Page(limit=_ALL, number=1, next_url="")
    return _page(request, backend, limit=limit or 10, page=page or 1)


PageOrAllDep = Annotated[Page, Depends(_page_or_all)]
"""The requested part of a list that is complete where nothing else is asked for."""


def page_of(model: Any, description: str, *also: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI entries of an operation that answers a page."""
    entries = answers(200, model, description, *also)
    entries[200]["headers"] = {"Link": _LINK}
    return entries


def counted(entries: dict[int | str, dict[str, Any]]) -> dict[int | str, dict[str, Any]]:
    """Add to OpenAPI entries of a list the header that says how many items there are."""
    entries[200]["headers"]["Content-Range"] = _CONTENT_RANGE
    return entries


def page_of_sealed(model: Any, description: str, *also: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI entries of a page with items that may have undecryptable secrets."""
    entries = page_of(model, description, *also)
    entries[200]["headers"] |= OPENAPI
    return entries


_FILM_POLICY: Final = "default-src 'none'; media-src 'self'; style-src 'unsafe-inline'"
"""A browser's player, which runs no script, cannot read its film from within a sandbox."""


def file_answer(
    request: Request,
    found: Path | RemoteObject,
    *,
    sha256: str,
    media_type: str,
    name: str | None = None,
) -> Response:
    """A file whose content never changes under its address.

    It is offered for saving, under the name if there is one, and never shown as a page: it is
    somebody else's.
    """
    headers = {
        "etag": f'"{sha256}"',
        "cache-control": "private, max-age=31536000, immutable",
        "x-content-type-options": "nosniff",
        "content-security-policy": _FILM_POLICY if media_type.startswith("video/") else "sandbox",
    }
    if f'"{sha256}"' in request.headers.get("if-none-match", ""):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return object_response(request, found, media_type=media_type, headers=headers, name=name)
