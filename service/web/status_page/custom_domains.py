"""Status pages at domains of their own: which host shows which page, and nothing else.

It stands behind the short cut that agents' calls take, so that they pay nothing for it, and before
everything else: on such a host there is no sign-in, no API and no other page.
"""

import asyncio
from typing import Final
from urllib.parse import urlsplit

import structlog
from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Receive, Scope, Send

from service.db.engine import DatabaseBusyError, DatabaseUnusableError, NoticesLost
from service.http.dependencies import Backend
from service.incidents.model import StatusChanged
from service.status_pages import actions as status_pages

log = structlog.get_logger()

PREFIX: Final = "/status"
DOMAIN: Final = "picket.status_domain"
"""Where the scope of a request has the host of the page that it is for."""
_NOWHERE: Final = "-"
"""The name of no file of any page."""


class CustomDomains:
    """Middleware that leads requests for a page's own domain to that page."""

    def __init__(self, app: ASGIApp, *, backend: Backend) -> None:
        self._app = app
        self._database = backend.database
        # Without an address of its own the service could not be told from a page's: whoever may
        # change a page could take the whole service's name.
        self._own_host = urlsplit(backend.public_url or "").hostname
        self._viewer_host = urlsplit(backend.trace_viewer.url or "").hostname
        self._pages: dict[str, str] = {}
        """The last parts of pages' addresses by host."""
        self._is_known = False
        self._reading = asyncio.Lock()
        self._database.listen(StatusChanged, self._forget)
        self._database.listen(NoticesLost, self._forget)

    def _forget(self, _notice: StatusChanged | NoticesLost) -> None:
        self._is_known = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if self._own_host is not None and scope["type"] in ("http", "websocket"):
            if not self._is_known:
                await self._read()
            if self._pages and (host := _host_of(scope)) is not None:
                url = self._pages.get(_without_port(host))
                if url is not None and scope["type"] == "websocket":
                    await send({"type": "websocket.close"})  # not accepted: the client gets 403
                    return
                if url is not None:
                    scope = _lead(scope, host, url)
        await self._app(scope, receive, send)

    async def _read(self) -> None:
        """Read them anew; where the database does not answer, those that were known stay."""
        async with self._reading:
            if self._is_known:
                return
            self._is_known = True
            try:
                found = await self._database.read(status_pages.list_domains)
            except (SQLAlchemyError, DatabaseBusyError, DatabaseUnusableError, RuntimeError) as why:
                self._is_known = False
                log.warning("status_page.domains_unknown", reason=str(why))
                return
            self._pages = {
                domain.lower(): url
                for domain, url in found.items()
                if not self._is_own(domain.lower())
            }

    def _is_own(self, domain: str) -> bool:
        """Whether a domain is the service's, or this machine's, where `picket up` may be open."""
        return domain in (self._own_host, self._viewer_host) or domain.endswith(".localhost")


def _host_of(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"host":
            return str(value.decode("latin-1")).lower()
    return None


def _without_port(host: str) -> str:
    return host.partition(":")[0].rstrip(".")


def _lead(scope: Scope, host: str, url: str) -> Scope:
    """The request as if it were for the page below the service's own name."""
    name = scope["path"][1:]
    if "/" in name:
        name = _NOWHERE
    path = f"{PREFIX}/{url}" + (f"/{name}" if name else "")
    return {**scope, "path": path, "raw_path": path.encode(), DOMAIN: host}
