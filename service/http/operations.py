"""Routers whose operations are whole as they are declared.

An application takes their routes as they are. Including a router builds each of its routes anew,
for each application: with a hundred operations half a second, in the first request that comes.
"""

from fastapi import APIRouter, Depends

from service.http.auth import limit_by_address
from service.http.late_routes import LateRoute
from service.http.routes import EVERYWHERE, operation_id, refusals


def keyed_operations(tag: str, *, prefix: str = "") -> APIRouter:
    """Operations that need an API key."""
    return APIRouter(
        route_class=LateRoute,
        prefix=prefix,
        tags=[tag],
        responses=refusals(*EVERYWHERE),
        generate_unique_id_function=operation_id,
    )


def open_operations(tag: str, *, prefix: str = "") -> APIRouter:
    """Operations that need none; who asks too often from one address is refused."""
    return APIRouter(
        route_class=LateRoute,
        prefix=prefix,
        tags=[tag],
        responses=refusals(429, 500),
        dependencies=[Depends(limit_by_address)],
        generate_unique_id_function=operation_id,
    )
