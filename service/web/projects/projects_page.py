"""`/projects`: what is kept as code, and how its last deployment went."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Connection
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.accounts import actions as accounts
from service.projects import actions as projects
from service.users import actions as users
from service.web.page_routing import Pages
from service.web.projects import project_page
from service.web.projects.deployment_words import path_of, show_deployment
from service.web.resources.listing import PAGE, number_of
from service.web.settings.audit_people import name_people
from service.web.visit import Visit

_MOST_GONE: Final = 100


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The list, and the page of each project."""
    return (pages.show("/projects", _show), *project_page.routes(pages))


async def _show(visit: Visit) -> Response:
    number = number_of(visit)

    def read(connection: Connection) -> dict[str, Any]:
        account_id, now_ms = visit.account_id, visit.now_ms(connection)
        names = name_people(
            accounts.list_keys(connection, account_id=account_id),
            users.list_users(connection, account_id=account_id),
        )
        found = projects.list_projects(
            connection, account_id, limit=PAGE + 1, offset=(number - 1) * PAGE
        )
        gone = projects.list_last_of_none(connection, account_id, limit=_MOST_GONE)
        return {
            "now_ms": now_ms,
            "rows": [_describe(one, names, now_ms=now_ms) for one in found[:PAGE]],
            "later": number + 1 if len(found) > PAGE else 0,
            "gone": [
                {
                    "logical_id": one.logical_id,
                    "path": path_of(one.logical_id),
                    "last": show_deployment(one, names, now_ms=now_ms),
                }
                for one in gone
                if number == 1
            ],
        }

    return visit.page(
        "projects.html",
        **await visit.read(read),
        earlier=number - 1,
        commands=_list_commands(visit),
    )


def _describe(one: projects.Listed, names: Mapping[str, str], *, now_ms: int) -> dict[str, Any]:
    return {
        "project": one.project,
        "path": path_of(one.project.logical_id),
        "resources": sum(one.counts.values()),
        "last": show_deployment(one.last, names, now_ms=now_ms) if one.last else None,
    }


def _list_commands(visit: Visit) -> list[tuple[str, str]]:
    """What a shell is told to deploy here: a sentence, and the lines to copy."""
    base = visit.base_url
    scheme, _, rest = base.partition("://")
    return [
        (
            "From YAML files, with Picket's own command:",
            f"export SERVICE_URL={base} API_KEY=cu_…\npicket apply checks",
        ),
        (
            "From a project of the Checkly command line:",
            (
                f"export CHECKLY_ENV=local CHECKLY_API_URL={base}\n"
                f"export CHECKLY_MQTT_URL={'wss' if scheme == 'https' else 'ws'}://{rest}\n"
                f"export CHECKLY_ACCOUNT_ID={visit.account_id} CHECKLY_API_KEY=cu_…\n"
                "npx checkly deploy"
            ),
        ),
    ]
