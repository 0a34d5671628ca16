"""How alerting sees results, time and locations; each is part of the caller's transaction."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

import structlog
from sqlalchemy import Connection

from contract.job import TEST_SOURCES
from service.alert_channels import actions as alert_channels
from service.alerting import postgresql, sqlite, store
from service.alerting.content import LEVELS
from service.alerting.model import (
    CLEAN,
    AlertFilter,
    AlertState,
    Level,
    LocationAlert,
    StoredAlert,
    StoredState,
)
from service.alerting.steps import CheckSteps
from service.checks import actions as checks
from service.db.engine import need_alone
from service.db.ids import new_id
from service.db.savepoints import attempt
from service.locations.model import LocationRow
from service.results.model import Record, Recorded, ResultType, RunStatus

log = structlog.get_logger()

GROUP: Final = 100
"""How many timers one transaction serves."""
_AGAIN_MS: Final = 60_000
"""After so long a timer that failed is tried again."""
_BAD: Final = frozenset(status for status, level in LEVELS.items() if level is not Level.PASSING)


_FIND_STORED: Final[dict[str, Callable[[Connection, Collection[str]], set[str]]]] = {
    "sqlite": sqlite.find_stored,
    "postgresql": postgresql.find_stored,
}
"""Finds those checks that have a state, by the database engine."""


def observe(connection: Connection, recorded: Sequence[Recorded], now_ms: int) -> None:
    """Take new results: states, alerts, notifications and incidents change with them.

    Most results are passes of checks that pass: they cost one query, whatever their number.
    """
    moving = _find_moving(connection, recorded)
    if not moving:
        return
    need_alone(connection)
    states = store.find_states(connection, list(moving))
    counting: dict[str, list[Recorded]] = {}
    for one in sorted(recorded, key=_order):
        check_id = one[1].check_id
        if check_id in moving and _may_count(one[1]):
            counting.setdefault(check_id, []).append(one)
    for check_id, results in counting.items():
        _carry_out(
            connection, check_id, partial(_take, results), states.get(check_id), now_ms=now_ms
        )


def _take(results: Sequence[Recorded], steps: CheckSteps) -> None:
    later = {result_id for result_id, _ in results}
    for result_id, record in results:
        later.discard(result_id)
        steps.take(result_id, record, later=later)


def _carry_out(
    connection: Connection,
    check_id: str,
    act: Callable[[CheckSteps], None],
    stored: StoredState | None,
    *,
    now_ms: int,
) -> bool:
    """Make and save the steps of one check; False: they failed, and nothing of them is left.

    The results of the transaction, and the steps of other checks, stand whatever one check does.
    """

    def part() -> None:
        if terms := checks.find_terms(connection, check_id):
            steps = CheckSteps(connection, check_id, terms, stored, now_ms=now_ms)
            act(steps)
            steps.save()

    problem = attempt(connection, part)
    if problem is not None:
        log.error("alerting.failed", check_id=check_id, exc_info=problem)
    return problem is None


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
    return record.result_type is ResultType.FINAL and record.source not in TEST_SOURCES


def _order(recorded: Recorded) -> tuple[int, str]:
    """The order in which results of one transaction count; a replay has nothing else to go by."""
    result_id, record = recorded
    return record.started_ms, result_id


def act_on_timers(connection: Connection, *, now_ms: int) -> int:
    """Do what is due without a result: time-based escalation and reminders; for how many checks."""
    due = store.list_due(connection, now_ms=now_ms, limit=GROUP)
    for check_id, stored in due.items():
        if not _carry_out(connection, check_id, CheckSteps.tick, stored, now_ms=now_ms):
            store.put_off(connection, check_id, until_ms=now_ms + _AGAIN_MS)
    return len(due)


def abandon(connection: Connection, check_id: str, *, now_ms: int) -> None:
    """The check is about to be deleted: end its incident, and notify whoever waits for its end."""
    terms = checks.find_terms(connection, check_id)
    if terms is not None:
        stored = store.find_states(connection, [check_id]).get(check_id)
        CheckSteps(connection, check_id, terms, stored, now_ms=now_ms).end()


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


def find_state(connection: Connection, check_id: str) -> AlertState:
    """How a check is doing by its newest runs, and since when."""
    stored = store.find_states(connection, [check_id]).get(check_id)
    return stored.state if stored else CLEAN


def find_states(connection: Connection, check_ids: Sequence[str]) -> Mapping[str, StoredState]:
    """What those checks that do not pass have led to, by check."""
    return store.find_states(connection, check_ids)


def list_lasting(
    connection: Connection, check_ids: Sequence[str], *, before_ms: int
) -> Mapping[str, int]:
    """Checks with alerts that have not passed since before a time: since when, by check."""
    return {
        check_id: stored.state.began_ms
        for check_id, stored in store.find_states(connection, check_ids).items()
        if stored.state.recorded is not Level.PASSING and stored.state.began_ms < before_ms
    }


def list_alerts(
    connection: Connection, wanted: AlertFilter, *, limit: int, offset: int = 0
) -> Sequence[StoredAlert]:
    """A page of the alerts of a window, newest first."""
    return store.list_alerts(connection, wanted, limit=limit, offset=offset)


def list_location_alerts(
    connection: Connection, account_id: str, *, limit: int
) -> Sequence[LocationAlert]:
    """The newest alerts about locations, newest first."""
    return store.list_location_alerts(connection, account_id, limit=limit, offset=0)


def remove_before(connection: Connection, *, before_ms: int, most: int) -> int:
    """Remove the oldest alerts that were made before; how many went."""
    return store.remove_before(connection, before_ms=before_ms, most=most)
