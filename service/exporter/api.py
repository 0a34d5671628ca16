"""`/v1/prometheus/metrics`: how checks and locations stand, for Prometheus."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection
from starlette.responses import Response

from contract.checks import CheckType, HeartbeatSpec
from contract.wire import decode
from service.agents import actions as agents
from service.checks import actions as checks
from service.checks.model import CheckLabels
from service.exporter.model import (
    CheckIdentity,
    CheckSeries,
    CheckStatus,
    LocationSeries,
    ResultStatus,
)
from service.exporter.rules import render_page
from service.groups import actions as groups
from service.heartbeats import actions as heartbeats
from service.http.auth import CallerDep
from service.http.dependencies import BackendDep
from service.http.routing import keyed_operations
from service.jobs import actions as jobs
from service.jobs.model import QueueDepth
from service.locations import actions as locations
from service.locations.views import CONNECTED_MS
from service.metrics import CONTENT_TYPE
from service.results import actions as results
from service.results.model import Measurement, RunStatus

router = keyed_operations("Prometheus", prefix="/v1/prometheus")
_TEXT: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The Prometheus text format 0.0.4, at most 30 seconds old.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}
_STATUSES: Final[Mapping[RunStatus, CheckStatus]] = {
    RunStatus.PASSED: CheckStatus.PASSING,
    RunStatus.DEGRADED: CheckStatus.DEGRADED,
    RunStatus.FAILED: CheckStatus.FAILING,
    RunStatus.TIMED_OUT: CheckStatus.FAILING,
}
_EMPTY: Final = QueueDepth(runs=0, oldest_wait_ms=0)
_DAY_S: Final = 86_400

_Tallies = Mapping[str, Mapping[ResultStatus, int]]


@router.get("/metrics", response_class=Response, responses=_TEXT)
async def read_prometheus_metrics(caller: CallerDep, backend: BackendDep) -> Response:
    """Read how all checks and private locations of the account stand, for Prometheus."""

    async def make() -> bytes:
        tallies = backend.exporter.tallies.copy()

        def query(connection: Connection) -> bytes:
            # Written here, in the reader's thread: of 1,000 checks it is several megabytes.
            now_ms = backend.clock.now_ms(connection)
            return render_page(
                _read_checks(connection, caller.account_id, tallies, now_ms=now_ms),
                _read_locations(connection, caller.account_id, now_ms=now_ms),
            )

        return await backend.database.read(query)

    text = await backend.exporter.pages.find(caller.account_id, make)
    return Response(text, headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"})


def _read_checks(
    connection: Connection, account_id: str, tallies: _Tallies, *, now_ms: int
) -> Iterator[CheckSeries]:
    """The series of all checks of an account, oldest check first."""
    found = checks.list_labels(connection, account_id)
    names = {one.id: one.name for one in groups.list_by_id(connection, account_id).values()}
    measured = results.measurements(connection, [one.id for one in found])
    pinged = heartbeats.last_pings(
        connection, [one.id for one in found if one.type is CheckType.HEARTBEAT]
    )
    for one in found:
        last_ms = pinged.get(one.id)
        series = CheckSeries(
            identity=_identify(one, names),
            status=_STATUSES[RunStatus(one.status)] if one.status else None,
            results=tallies.get(one.id, {}),
            last_ping_s=None if last_ms is None else last_ms / 1000,
            ping_interval_s=_interval_s(one),
        )
        seen = measured.get(one.id)
        yield series if seen is None else _add_measurement(series, seen, now_ms)


def _identify(check: CheckLabels, group_names: Mapping[int, str]) -> CheckIdentity:
    return CheckIdentity(
        id=check.id,
        type=check.type,
        name=check.name,
        activated=check.activated,
        muted=check.muted,
        group="" if check.group_id is None else group_names.get(check.group_id, ""),
        tags=check.tags,
    )


def _add_measurement(series: CheckSeries, seen: Measurement, now_ms: int) -> CheckSeries:
    age_s = (now_ms - seen.created_ms) / 1000
    days = seen.days_to_expiry
    return replace(
        series,
        response_time_ms=seen.response_time_ms,
        timings_ms=seen.timings_ms,
        latency_ms=seen.latency_ms,
        packet_loss_ratio=None if seen.packet_loss is None else seen.packet_loss / 100,
        vitals_ms=seen.vitals_ms,
        layout_shift=seen.layout_shift,
        expires_in_s=None if days is None else round(days * _DAY_S - age_s),
    )


def _read_locations(
    connection: Connection, account_id: str, *, now_ms: int
) -> Iterator[LocationSeries]:
    """The series of all private locations of an account."""
    found = locations.list_all(connection, account_id)
    seen = agents.seen_at(connection, [one.id for one in found])
    connected = Counter(
        one.location_id for one in seen if now_ms - one.last_seen_ms <= CONNECTED_MS
    )
    waiting = jobs.load_queue_depths(connection, now_ms=now_ms)
    for one in found:
        queue = waiting.get(one.id, _EMPTY)
        yield LocationSeries(
            id=one.id,
            name=one.name,
            slug_name=one.slug_name,
            queue_size=queue.runs,
            oldest_wait_ms=queue.oldest_wait_ms,
            agents=connected[one.id],
        )


def _interval_s(check: CheckLabels) -> float | None:
    return decode(check.heartbeat_spec, HeartbeatSpec).period_s if check.heartbeat_spec else None
