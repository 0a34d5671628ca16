"""Reading all that is exported of an account; part of the caller's transaction."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection

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
from service.groups import actions as groups
from service.heartbeats import actions as heartbeats
from service.jobs import actions as jobs
from service.jobs.model import QueueDepth
from service.locations import actions as locations
from service.locations.views import CONNECTED_MS
from service.results import actions as results
from service.results.model import Measurement, RunStatus

_STATUSES: Final[Mapping[RunStatus, CheckStatus]] = {
    RunStatus.PASSED: CheckStatus.PASSING,
    RunStatus.DEGRADED: CheckStatus.DEGRADED,
    RunStatus.FAILED: CheckStatus.FAILING,
    RunStatus.TIMED_OUT: CheckStatus.FAILING,
}
_EMPTY: Final = QueueDepth(runs=0, oldest_wait_ms=0)
_DAY_S: Final = 86_400

Tallies = Mapping[str, Mapping[ResultStatus, int]]


def read_checks(
    connection: Connection, account_id: str, tallies: Tallies, *, now_ms: int
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


def read_locations(
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
