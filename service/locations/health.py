"""Watches over locations: who has no agent, and how long the queues are."""

import structlog
from sqlalchemy import Connection

from service.agents import actions as agents
from service.alerting import actions as alerting
from service.checks import actions as checks
from service.clock import Clock, GapWatch
from service.jobs import actions as jobs
from service.jobs import settle
from service.jobs.model import QueueDepth
from service.locations import store
from service.locations.model import LocationRow, QueueSample
from service.locations.rules import KEPT_MS, RETURN_MS, SAMPLE_MS, is_deserted

log = structlog.get_logger()

_EMPTY = QueueDepth(runs=0, oldest_wait_ms=0)


class LocationWatch:
    """Looks at all locations, each time in one transaction."""

    def __init__(self, clock: Clock, watch: GapWatch) -> None:
        self._clock = clock
        self._watch = watch

    def look(self, connection: Connection) -> int:
        """Note which locations went or came back, and once a minute how their queues stand.

        Returns how many locations changed.
        """
        now_ms = self._clock.now_ms(connection)
        since_ms = self._watch.since_ms(now_ms)
        locations = store.list_of_all_accounts(connection)
        changed = self._judge(connection, locations, since_ms=since_ms, now_ms=now_ms)
        _sample(connection, locations, now_ms=now_ms)
        return changed

    def _judge(
        self,
        connection: Connection,
        locations: tuple[LocationRow, ...],
        *,
        since_ms: int,
        now_ms: int,
    ) -> int:
        known, changed = store.list_outages(connection), 0
        seen_ms = agents.last_seen_at(connection)
        deserted = [
            one.id
            for one in locations
            if is_deserted(
                created_ms=one.created_ms,
                last_seen_ms=seen_ms.get(one.id),
                # What was found out before a restart holds until somebody comes.
                watched_since_ms=now_ms - RETURN_MS if one.id in known else since_ms,
                now_ms=now_ms,
            )
        ]
        used = checks.list_locations_in_use(connection, deserted)
        for one in locations:
            out = one.id in used
            if out != (one.id in known):
                changed += 1
                began_ms = known.get(one.id, now_ms)
                _store_change(connection, one, out=out, since_ms=began_ms, now_ms=now_ms)
        return changed


def _store_change(
    connection: Connection, location: LocationRow, *, out: bool, since_ms: int, now_ms: int
) -> None:
    if out:
        _begin_outage(connection, location, now_ms=now_ms)
    else:
        _end_outage(connection, location)
    alerting.report_location(
        connection, location, since_ms=since_ms, is_recovery=not out, now_ms=now_ms
    )


def _begin_outage(connection: Connection, location: LocationRow, *, now_ms: int) -> None:
    store.begin_outage(connection, location.id, now_ms=now_ms)
    settle.end_queued_at(connection, location.id, now_ms=now_ms)
    log.warning("location.unavailable", location_id=location.id, location=location.slug_name)


def _end_outage(connection: Connection, location: LocationRow) -> None:
    store.end_outage(connection, location.id)
    log.info("location.available", location_id=location.id, location=location.slug_name)


def _sample(connection: Connection, locations: tuple[LocationRow, ...], *, now_ms: int) -> None:
    minute_ms = now_ms - now_ms % SAMPLE_MS
    if store.find_newest_sample_ms(connection) == minute_ms:
        return
    store.forget_samples(connection, before_ms=now_ms - KEPT_MS, from_ms=minute_ms)
    queues = jobs.load_queue_depths(connection, now_ms=now_ms)
    samples = []
    for one in locations:
        queue = queues.get(one.id, _EMPTY)
        samples.append(QueueSample(one.id, minute_ms, queue.runs, queue.oldest_wait_ms))
    store.add_samples(connection, samples)
