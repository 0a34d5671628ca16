"""Query parameters that are nearly known ones: a filter passed over would let all through."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request

from service.http.errors import InvalidError
from service.http.strict import slip

_TURNS_PAGES: Final = {"page": "nextId", "nextId": "page"}
"""Of two ways through a list, passed over where the other one leads: the same page for ever."""


def hold_query(request: Request) -> None:
    """Refuse a slip of the pen, and another list's way; other unknown parameters are passed over.

    Raises:
        InvalidError: a parameter is nearly one that the operation has, or does what another one
            does here.
    """
    route = request.scope.get("route")
    if not request.url.query or not isinstance(route, APIRoute):
        return
    names, known = request.query_params.keys(), set(_known(route.dependant))
    if found := slip(names, known) or _other_way(names, known):
        name, meant = found
        raise InvalidError(
            f'"{name}" is not known here, where {meant} may be meant.', keys=(name,), source="query"
        )


def _other_way(names: Iterable[str], known: Collection[str]) -> tuple[str, str] | None:
    pairs = ((name, _TURNS_PAGES[name]) for name in names if name in _TURNS_PAGES)
    return next((pair for pair in pairs if pair[0] not in known and pair[1] in known), None)


def _known(dependant: Dependant) -> Iterator[str]:
    yield from (one.alias for one in dependant.query_params)
    for part in dependant.dependencies:
        yield from _known(part)
