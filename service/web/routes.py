"""Every page, and where it is."""

from starlette.routing import BaseRoute, Route

from service.web import gallery, live
from service.web.alerts import alerts_page, subscriptions_page
from service.web.check import check_page
from service.web.locations import locations_page
from service.web.overview import group_members, overview_page, selection
from service.web.page_routing import Pages
from service.web.projects import projects_page
from service.web.resources import (
    alert_settings_form,
    bundle_pages,
    certificate_pages,
    channel_pages,
    check_forms,
    group_pages,
    incident_pages,
    link_pages,
    snippet_pages,
    status_page_forms,
    try_now,
    variable_pages,
    window_pages,
)
from service.web.result import result_page, test_session_page
from service.web.settings import audit_page, keys_page, settings_page, users_page
from service.web.sign_in import oidc_page, password_page, sign_in_page
from service.web.static_files import PREFIX, serve_asset
from service.web.status_page import visitor_pages

_PARTS = (
    oidc_page.routes,
    password_page.routes,
    sign_in_page.routes,
    overview_page.routes,
    selection.routes,
    live.routes,
    try_now.routes,
    test_session_page.routes,
    check_forms.routes,
    bundle_pages.routes,
    check_page.routes,
    settings_page.routes,
    keys_page.routes,
    users_page.routes,
    audit_page.routes,
    locations_page.routes,
    alerts_page.routes,
    result_page.routes,
    group_pages.routes,
    group_members.routes,
    link_pages.routes,
    projects_page.routes,
    variable_pages.routes,
    snippet_pages.routes,
    certificate_pages.routes,
    alert_settings_form.routes,
    channel_pages.routes,
    subscriptions_page.routes,
    window_pages.routes,
    gallery.routes,
    status_page_forms.routes,
    incident_pages.routes,
    visitor_pages.routes,
)


def page_routes(pages: Pages) -> list[BaseRoute]:
    """The routes of all pages, and of what they load."""
    asset = Route(f"{PREFIX}/{{digest}}/{{name}}", serve_asset, include_in_schema=False)
    return [asset, *(route for part in _PARTS for route in part(pages))]
