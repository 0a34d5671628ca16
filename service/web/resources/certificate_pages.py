"""`/settings/certificates`: client certificates, which runs show to hosts that ask for one."""

from typing import Final

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.certificates.api import ClientCertificateWrite
from service.web.forms.resource_form import Form, Resource, Section
from service.web.forms.resource_pages import resource_routes
from service.web.page_routing import Pages
from service.web.visit import Visit

_API: Final = "/v1/client-certificates"
CERTIFICATES: Final = Resource(
    path="/settings/certificates",
    noun="certificate",
    place="Client certificates",
    read=f"GET {_API}/{{id}}",
    delete=f"DELETE {_API}/{{id}}",
    forms=(
        Form(
            title="client certificate",
            sentence="API, URL and script checks show it to the hosts that ask for one.",
            model=ClientCertificateWrite,
            create=f"POST {_API}",
            sections=(
                Section(
                    title="Certificate",
                    fields=("host", "cert", "key", "passphrase", "ca"),
                    hint="It cannot be changed later: add another one, and delete this one.",
                ),
            ),
        ),
    ),
    title_of=lambda document: f"the certificate of {document['host']}",
    loss="Hosts that ask for it refuse checks from their next run on. This cannot be undone.",
    placeholders={"host": "*.shop.example"},
)


def routes(pages: Pages) -> tuple[BaseRoute, ...]:
    """The list, a new one, and the end of one."""
    return (pages.show(CERTIFICATES.path, _show), *resource_routes(pages, CERTIFICATES))


async def _show(visit: Visit) -> Response:
    # They come all at once.
    return visit.page("certificates.html", rows=await visit.find(_API))
