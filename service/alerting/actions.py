"""How alerting sees results, time and locations; each is part of the caller's transaction."""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from sqlalchemy import Connection

from contract.job import RunSource
from service.alert_channels import actions as alert_channels
from service.alerting import sqlite, store
from service.alerting.model import LocationAlert
from service.alerting.steps import CheckSteps
from service.checks import actions as checks
from service.db.ids import new_id
from service.locations.model import LocationRow
from service.results.model import Record, Recorded, ResultType, RunStatus
from service.status_pages import actions as status_pages

GROUP: Final = 100
"""How many timers one transaction serves."""
_TESTS: Final = frozenset({RunSource.TEST_RECORD, RunSource.TEST_NO_RECORD})
_BAD: Final = frozenset({RunStatus.DEGRADED, RunStatus.FAILED, RunStatus.TIMED_OUT})


_FIND_STORED: Final[dict[str, Callable[[Connection, Collection[str]], set[str]]]] = {
    "sqlite": sqlite.find_stored
}
"""Finds those checks that have a state, by the database engine."""


def observe(connection: Connection, recorded: Sequence[Recorded], now_ms: int) -> None:
    """Take new results: states, alerts, notifications and incidents change with them.

    Most results are passes of checks that pass: they cost one query, whatever their number.
    """
    moving = _find_moving(connection, recorded)
    if not moving:
        return
    states = store.find_states(connection, list(moving))
    running: dict[str, CheckSteps] = {}
    for result_id, record in sorted(recorded, key=_order):
        check_id = record.check_id
        if check_id not in moving or not _may_count(record):
            continue
        if check_id not in running:
            terms = checks.find_terms(connection, check_id)
            if terms is None:
                continue
            running[check_id] = CheckSteps(
                connection, check_id, terms, states.get(check_id), now_ms=now_ms
            )
        running[check_id].take(result_id, record)
    for steps in running.values():
        steps.save()


def _find_moving(connection: Connection, recorded: Sequence[Recorded]) -> set[str]:
    """The checks of which something may change by these results."""
    check_ids = {record.check_id for _, record in recorded}
    stored = _FIND_STORED[connection.dialect.name](connection, check_ids)
    return stored | {
        record.check_id
        for _, record in recorded
        if record.status is not RunStatus.PASSED and record.status in _BAD
    }


def _may_count(record: Record) -> bool:
    return record.result_type is ResultType.FINAL and record.source not in _TESTS


def _order(recorded: Recorded) -> tuple[int, str]:
    """The order in which results of one transaction count; a replay has nothing else to go by."""
    result_id, record = recorded
    return record.started_ms, result_id


def act_on_timers(connection: Connection, *, now_ms: int) -> int:
    """Do what is due without a result: time-based escalation and reminders; for how many checks."""
    due = store.list_due(connection, now_ms=now_ms, limit=GROUP)
    for check_id, stored in due.items():
        if terms := checks.find_terms(connection, check_id):
            steps = CheckSteps(connection, check_id, terms, stored, now_ms=now_ms)
            steps.tick()
            steps.save()
    return len(due)


def abandon(connection: Connection, account_id: str, check_id: str, *, now_ms: int) -> None:
    """The check goes, and its state with it: nothing else would resolve its incident."""
    for stored in store.find_states(connection, [check_id]).values():
        if stored.incident_id is not None:
            status_pages.resolve_incident(connection, account_id, stored.incident_id, now_ms=now_ms)


def report_location(
    connection: Connection, location: LocationRow, *, since_ms: int, is_recovery: bool, now_ms: int
) -> None:
    """Record that a location lost its last agent, or has one again: one alert for all its checks.

    `since_ms`: when it was found out that no agent was there.
    """
    count, names = checks.find_location_users(connection, location.id)
    alert = LocationAlert(
        id=new_id(now_ms),
        account_id=location.account_id,
        location=location.slug_name,
        location_name=location.name,
        is_recovery=is_recovery,
        since_ms=since_ms,
        created_ms=now_ms,
        check_count=count,
        check_names=names,
    )
    store.add_location_alert(connection, alert)
    alert_channels.enqueue_location(connection, alert, now_ms=now_ms)


def remove_before(connection: Connection, *, before_ms: int, most: int) -> int:
    """Remove the oldest alerts that were made before; how many went."""
    return store.remove_before(connection, before_ms=before_ms, most=most)
