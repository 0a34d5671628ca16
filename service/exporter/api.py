"""`/v1/prometheus/metrics`: how checks and locations stand, for Prometheus."""

from typing import Any, Final

from sqlalchemy import Connection
from starlette.responses import Response

from service.exporter import actions
from service.exporter.rules import render_page
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.routing import keyed_operations
from service.metrics import CONTENT_TYPE

router = keyed_operations("Prometheus", prefix="/v1/prometheus")
_TEXT: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The Prometheus text format 0.0.4, at most 30 seconds old.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}


@router.get("/metrics", response_class=Response, responses=_TEXT)
async def read_prometheus_metrics(caller: CallerDep, backend: BackendDep) -> Response:
    """Read how all checks and private locations of the account stand, for Prometheus."""

    async def make() -> bytes:
        tallies = backend.exporter.tallies.copy()

        def query(connection: Connection) -> bytes:
            # Written here, in the reader's thread: of 1,000 checks it is several megabytes.
            now_ms = backend.clock.now_ms(connection)
            return render_page(
                actions.read_checks(connection, caller.account_id, tallies, now_ms=now_ms),
                actions.read_locations(connection, caller.account_id, now_ms=now_ms),
            )

        return await backend.database.read(query)

    text = await backend.exporter.pages.find(caller.account_id, make)
    return Response(text, headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"})
