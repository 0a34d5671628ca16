"""`/settings/snippets`: code that scripts of several checks share."""

from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.snippets.model import SnippetWrite
from service.web.forms.resource_form import Form, Resource, Section
from service.web.forms.resource_pages import resource_routes
from service.web.page_routing import Pages
from service.web.resources.listing import show_list
from service.web.visit import Visit

SNIPPETS: Final = Resource(
    path="/settings/snippets",
    noun="snippet",
    place="Snippets",
    read="GET /v1/snippets/{id}",
    delete="DELETE /v1/snippets/{id}",
    forms=(
        Form(
            title="snippet",
            sentence="Code that scripts import by its name, or that runs before and after API"
            " checks.",
            model=SnippetWrite,
            create="POST /v1/snippets",
            replace="PUT /v1/snippets/{id}",
            sections=(Section(title="Snippet", fields=("name", "script")),),
        ),
    ),
    loss="Scripts that import it fail from their next run on. This cannot be undone.",
    placeholders={"name": "sign-in"},
)


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The list and the forms of snippets."""
    return (pages.show(SNIPPETS.path, _show), *resource_routes(pages, SNIPPETS))


async def _show(visit: Visit) -> Response:
    return await show_list(visit, SNIPPETS, "GET /v1/snippets", "snippets.html")
