"""`/metrics`: who may read it, and how its page is made."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

from sqlalchemy import Connection
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Route

from service.clock import Clock
from service.db.engine import Database
from service.http.errors import ForbiddenError, NotFoundError
from service.jobs import actions as jobs
from service.jobs.model import QueueDepth
from service.locations import actions as locations
from service.metrics import CONTENT_TYPE, Metrics
from service.settings import MetricsAccess

PATH: Final = "/metrics"
_EMPTY: Final = QueueDepth(runs=0, oldest_wait_ms=0)
_OF_PROXIES: Final = ("forwarded", "via", "x-forwarded-for", "x-real-ip")


@dataclass(frozen=True, slots=True)
class MetricsPage:
    """The page and what it is made of."""

    database: Database
    clock: Clock
    metrics: Metrics
    access: MetricsAccess

    def routes(self) -> list[Route]:
        """GET of `/metrics`."""
        return [Route(PATH, self._show, methods=["GET"])]

    async def _show(self, request: Request) -> Response:
        if self.access is MetricsAccess.OFF:
            raise NotFoundError(f"There is nothing at {PATH}.")
        if self.access is MetricsAccess.LOOPBACK and not is_local(request):
            raise ForbiddenError(
                "Metrics are shown to this machine only; METRICS_ACCESS=anyone shows them to"
                " everybody who reaches this port."
            )
        text = self.metrics.render(await self.database.read(self._queues))
        return Response(text, headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"})

    def _queues(self, connection: Connection) -> Mapping[str, QueueDepth]:
        """By location id; those without a queue as well."""
        waiting = jobs.load_queue_depths(connection, now_ms=self.clock.now_ms(connection))
        return {each: waiting.get(each, _EMPTY) for each in locations.list_all_ids(connection)}


def is_local(request: HTTPConnection) -> bool:
    """Whether it comes from this machine by itself, and not through a proxy that runs here."""
    if request.client is None or any(name in request.headers for name in _OF_PROXIES):
        return False
    try:
        address = ip_address(request.client.host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
