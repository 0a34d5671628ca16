"""`/settings/variables`: values and secrets that all checks of an account have."""

from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.variables.schemas import VariableWrite
from service.web.forms.resource_form import Form, Resource, Section
from service.web.forms.resource_pages import resource_routes
from service.web.page_routing import Pages
from service.web.resources.listing import show_list
from service.web.visit import Visit

VARIABLES: Final = Resource(
    path="/settings/variables",
    noun="variable",
    place="Variables",
    read="GET /v1/variables/{id}",
    delete="DELETE /v1/variables/{id}",
    forms=(
        Form(
            title="variable",
            sentence="Requests and scripts of all checks can use it; groups and checks override it"
            " with their own.",
            model=VariableWrite,
            create="POST /v1/variables",
            replace="PUT /v1/variables/{id}",
            sections=(Section(title="Variable", fields=("key", "value", "secret", "locked")),),
        ),
    ),
    key="key",
    title_of=lambda document: str(document["key"]),
    loss="Requests that name it fail from their next run on. This cannot be undone.",
    placeholders={"key": "API_URL"},
)


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The list and the forms of variables."""
    return (pages.show(VARIABLES.path, _show), *resource_routes(pages, VARIABLES))


async def _show(visit: Visit) -> Response:
    return await show_list(visit, VARIABLES, "GET /v1/variables", "variables.html")
