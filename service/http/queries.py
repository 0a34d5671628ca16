"""Query parameters that are nearly known ones: a filter passed over would let all through."""

from collections.abc import Iterator

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request

from service.http.errors import InvalidError
from service.http.strict import slip


def hold_query(request: Request) -> None:
    """Refuse a slip of the pen; other unknown parameters are passed over.

    Raises:
        InvalidError: a parameter is nearly one that the operation has.
    """
    route = request.scope.get("route")
    if not request.url.query or not isinstance(route, APIRoute):
        return
    if found := slip(request.query_params.keys(), set(_known(route.dependant))):
        name, meant = found
        raise InvalidError(
            f'"{name}" is not known here, where {meant} may be meant.', keys=(name,), source="query"
        )


def _known(dependant: Dependant) -> Iterator[str]:
    yield from (one.alias for one in dependant.query_params)
    for part in dependant.dependencies:
        yield from _known(part)
