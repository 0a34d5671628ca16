"""The public API as a whole: every router, and how they come into the application."""

from functools import cache, partial
from typing import Any, Final

from fastapi import FastAPI
from starlette.routing import BaseRoute

from service.accounts import api as accounts
from service.addresses import api as addresses
from service.alert_channels import api as alert_channels
from service.alerting import api as alerting
from service.analytics import api as analytics
from service.badges import api as badges
from service.bundles import api as bundles
from service.bundles import client_storage
from service.certificates import api as certificates
from service.checks import api as checks
from service.checks import api as checks_write
from service.error_groups import api as error_groups
from service.exporter import api as exporter
from service.groups import api as groups
from service.heartbeats import api as heartbeats
from service.http.auth import require_key
from service.http.dependencies import Backend, attach
from service.http.docs_page import install_page
from service.http.error_responses import install_errors
from service.http.openapi import document_of, install_openapi
from service.http.request_body import BodyGate
from service.http.server.list_parameters import ListParameters
from service.incidents import api as incidents
from service.locations import api as locations
from service.maintenance import api as maintenance
from service.mqtt import api as mqtt
from service.projects import api as projects
from service.projects.imports import api as imports
from service.reporting import api as reporting
from service.results import api as result_lists
from service.results import api as results
from service.runtimes import api as runtimes
from service.sessions import api as sessions
from service.sessions.ad_hoc import api as ad_hoc
from service.snippets import api as snippets
from service.status_pages import api as status_pages
from service.status_pages import public as public_status_pages
from service.statuses import api as statuses
from service.subscriptions import api as subscriptions
from service.subscriptions import visitor_routes
from service.triggers import api as triggers
from service.triggers import links
from service.variables import api as variables
from service.web.error_pages import install_error_pages
from service.web.page_routing import Pages
from service.web.routes import page_routes
from service.web.status_page.custom_domains import CustomDomains

PREFIXES: Final = ("/v1", "/v2", "/next")

_ROUTERS: Final = (
    accounts.router,
    accounts.clients_router,
    checks_write.write_router,
    heartbeats.events_router,
    checks.router,
    groups.router,
    locations.router,
    result_lists.lists_router,
    result_lists.router_v2,
    results.router,
    sessions.router,
    sessions.router_v2,
    ad_hoc.router,
    ad_hoc.clients_router,
    ad_hoc.logs_router,
    statuses.router,
    error_groups.router,
    exporter.router,
    alerting.router,
    analytics.router,
    reporting.router,
    triggers.router,
    snippets.router,
    variables.router,
    certificates.router,
    maintenance.router,
    bundles.router,
    client_storage.router,
    imports.router,
    projects.router,
    badges.router,
    locations.regions_router,
    runtimes.router,
    links.router,
    addresses.router,
    incidents.router,
    status_pages.services_router,
    subscriptions.router,
    status_pages.router,
    public_status_pages.router,
    alert_channels.router,
    alert_channels.notifications_router,
)
OPERATIONS: Final[tuple[BaseRoute, ...]] = tuple(
    route for router in _ROUTERS for route in router.routes
)
"""In the order in which a path is looked for. See `operations` for why no router is included."""


def install_api(app: FastAPI, backend: Backend) -> None:
    """Put the public API into the application: routes, refusals, limits, document and page."""
    attach(app, backend)
    # A redirect has no body, and curl follows none: it would look like a success without one.
    app.router.redirect_slashes = False
    install_errors(app, OPERATIONS)
    pages = Pages(backend)
    app.router.routes += [*OPERATIONS, *visitor_routes.routes(), *page_routes(pages)]
    app.router.routes += mqtt.routes(backend)
    install_openapi(app, document)
    install_page(app)
    install_error_pages(app, pages, api=PREFIXES)
    app.add_middleware(
        BodyGate,
        prefixes=PREFIXES,
        streamed=(bundles.PREFIX, *client_storage.UPLOADS),
        large=ad_hoc.LARGE_PATHS | projects.LARGE_BODIES,
        require_key=partial(require_key, backend),
    )
    app.add_middleware(ListParameters, prefixes=PREFIXES)
    app.add_middleware(CustomDomains, backend=backend)


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document. Made once, of what is the same in each application."""
    return document_of(OPERATIONS)
