"""Lists of resources, page by page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from service.web.forms.resource_form import Resource
from service.web.visit import Visit

PAGE: Final = 100
_LAST_PAGE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of a list."""

    number: int
    rows: Sequence[Mapping[str, Any]]


def number_of(visit: Visit) -> int:
    """Which page is asked for; the first one is 1."""
    asked = visit.request.query_params.get("page", "")
    is_number = asked.isascii() and asked.isdecimal() and len(asked) < len(str(_LAST_PAGE))
    return max(int(asked), 1) if is_number else 1


async def read_page(visit: Visit, operation: str) -> ListPage:
    """The page that is asked for, as the API gives it to keys that only read."""
    number = number_of(visit)
    answer = await visit.look(f"{operation}?limit={PAGE}&page={number}")
    return ListPage(number, [] if answer.is_error else answer.body)


def show_rows(
    visit: Visit, resource: Resource, page: ListPage, template: str, **values: Any
) -> Response:
    """Show a page of a list."""
    return visit.page(
        template,
        resource=resource,
        rows=page.rows,
        earlier=page.number - 1,
        later=page.number + 1 if len(page.rows) == PAGE else 0,
        **values,
    )


async def show_list(visit: Visit, resource: Resource, operation: str, template: str) -> Response:
    """Show a list of what the API gives, as it gives it."""
    return show_rows(visit, resource, await read_page(visit, operation), template)
