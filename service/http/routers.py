"""The public API as a whole: every router, and how they come into the application."""

from typing import Final

from fastapi import APIRouter, FastAPI

from service.bundles import api as bundles
from service.checks import api as checks
from service.checks import api_write as checks_write
from service.http.backend import Backend, attach
from service.http.body import BodyGate
from service.http.error_body import install_errors
from service.http.openapi import install_openapi
from service.http.routes import EVERYWHERE, refusals
from service.locations import api as locations
from service.results import api as results
from service.runtimes import api as runtimes
from service.sessions import api as sessions
from service.snippets import api as snippets

PREFIX: Final = "/v1"

routers: Final[tuple[APIRouter, ...]] = (
    checks_write.router,
    checks.router,
    locations.router,
    results.router,
    sessions.router,
    snippets.router,
    bundles.router,
)
"""Operations that need an API key."""
open_routers: Final[tuple[APIRouter, ...]] = (locations.regions_router, runtimes.router)
"""Operations that need none."""


def install_api(app: FastAPI, backend: Backend) -> None:
    """Put the public API into the application: routes, refusals, limits, document and page."""
    attach(app, backend)
    install_errors(app, [one for router in (*routers, *open_routers) for one in router.routes])
    for router in routers:
        app.include_router(router, responses=refusals(*EVERYWHERE))
    for router in open_routers:
        app.include_router(router)
    install_openapi(app)
    app.add_middleware(BodyGate, prefix=PREFIX, streamed=bundles.PREFIX)
