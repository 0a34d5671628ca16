"""What stands below the charts: runs, errors, alerts, settings; one at a time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection

from contract.checks import CheckType
from service.accounts import actions as accounts
from service.alert_channels import actions as alert_channels
from service.alerting import actions as alerting
from service.alerting.model import AlertFilter, StoredAlert
from service.checks.model import CheckRow
from service.error_groups import actions as error_groups
from service.groups.model import GroupRow
from service.results import actions as results
from service.results.model import Cause, ResultFilter, RunStatus, StoredResult
from service.results.views import explain
from service.status_pages import actions as status_pages
from service.web.alerts.alert_words import (
    Door,
    Sent,
    describe_alert,
    explain_silence,
    find_door,
    label_channel,
    list_sent,
)
from service.web.check.applied_settings import SettingsReader
from service.web.check.ranges import Range
from service.web.states import State, state_of_run

RUNS_A_PAGE: Final = 50
_LATEST: Final = 8
"""How many of the latest runs are shown: they fit on one line."""
_MOST_ALERTS: Final = 100
_MOST_GROUPS: Final = 100
_MISSED: Final = "missed"
STATUSES: Final[Mapping[str, frozenset[RunStatus]]] = {
    "failed": frozenset({RunStatus.FAILED, RunStatus.TIMED_OUT}),
    "degraded": frozenset({RunStatus.DEGRADED}),
    _MISSED: frozenset({RunStatus.MISSED, RunStatus.ERROR}),
    "passed": frozenset({RunStatus.PASSED}),
}
"""What the list of runs can be narrowed to."""
_WORDS: Final = {
    RunStatus.PASSED: "passed",
    RunStatus.DEGRADED: "degraded",
    RunStatus.FAILED: "failed",
    RunStatus.TIMED_OUT: "timed out",
    RunStatus.MISSED: "missed",
    RunStatus.ERROR: "not checked",
}
_SOURCES: Final = {
    "SCHEDULER": "",
    "TRIGGER_API": "on demand",
    "TEST_RECORD": "test",
    "TEST_NO_RECORD": "test",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunShown:
    """A run in the list."""

    id: str
    state: State
    word: str
    sentence: str
    """Why it is no pass. Empty: it is one, or nobody says."""
    started_ms: int
    location: str
    took_ms: float | None
    """Its response time; without an answer how long the agent tried. None: nobody looked."""
    attempt: int
    source: str
    """What asked for it. Empty: its schedule."""
    due_times: int
    cause: Cause | None
    """Why nobody looked. None: somebody did."""
    first_ms: int
    """When the oldest of several missed runs was due; of one run when it started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsWanted:
    """Which runs are listed."""

    status: str
    """A name of `STATUSES`. Empty: any."""
    location: str
    """A slug. Empty: any."""
    failures_first: bool
    page: int
    """From 1."""


def read_wanted_runs(query: Mapping[str, str]) -> RunsWanted:
    """Which runs an address asks for."""
    status, page = query.get("status", ""), query.get("page", "1")
    return RunsWanted(
        status=status if status in STATUSES else "",
        location=query.get("location", ""),
        failures_first=query.get("first") == "failures",
        page=max(1, int(page)) if page.isascii() and page.isdecimal() and len(page) < 6 else 1,
    )


def list_runs(
    connection: Connection, check: CheckRow, shown: Range, wanted: RunsWanted
) -> tuple[list[RunShown], bool]:
    """A page of runs, and whether more follow; runs that were missed in a row are one.

    Whoever asks for missed runs alone gets each by itself.
    """
    found = results.list_page(
        connection,
        check.id,
        ResultFilter(
            from_ms=shown.span[0],
            to_ms=shown.span[1] + 1,
            location=wanted.location or None,
            statuses=STATUSES.get(wanted.status),
            failures_first=wanted.failures_first,
        ),
        limit=RUNS_A_PAGE + 1,
        offset=(wanted.page - 1) * RUNS_A_PAGE,
    )
    kind = CheckType(check.type)
    runs = [show_run(one, kind) for one in found[:RUNS_A_PAGE]]
    return runs if wanted.status == _MISSED else _fold(runs), len(found) > RUNS_A_PAGE


def list_latest_runs(connection: Connection, check: CheckRow) -> list[RunShown]:
    """The newest runs, whatever range is shown; runs that were missed in a row are one."""
    found = results.list_page(connection, check.id, ResultFilter(), limit=_LATEST)
    kind = CheckType(check.type)
    return _fold(show_run(one, kind) for one in found)


def _fold(runs: Iterable[RunShown]) -> list[RunShown]:
    """Runs in which nobody looked, that follow each other and have one cause, as one."""
    folded: list[RunShown] = []
    for one in runs:
        last = folded[-1] if folded else None
        if last is None or one.cause is None or last.cause is not one.cause:
            folded.append(one)
            continue
        is_here = one.location in last.location.split(", ")
        folded[-1] = replace(
            last,
            due_times=last.due_times + one.due_times,
            first_ms=min(last.first_ms, one.first_ms),
            location=last.location if is_here else f"{last.location}, {one.location}",
        )
    return folded


def show_run(stored: StoredResult, kind: CheckType) -> RunShown:
    """A run as lists show it."""
    return RunShown(
        id=stored.id,
        state=state_of_run(stored.status),
        word=_WORDS[stored.status],
        sentence=explain(stored, kind) or "",
        started_ms=stored.started_ms,
        location=stored.location,
        took_ms=_find_took_ms(stored),
        attempt=stored.attempt,
        source=_SOURCES.get(stored.source, "on demand"),
        due_times=stored.due_times or 1,
        cause=stored.cause,
        first_ms=stored.started_ms,
    )


def _find_took_ms(stored: StoredResult) -> float | None:
    if stored.response_time_ms is not None or stored.detail is None:
        return stored.response_time_ms
    return stored.detail.outcome.timings.total


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertShown:
    """An alert in the list."""

    state: State
    word: str
    at_ms: int
    started_ms: int
    location: str
    result_id: str | None
    """None: its result is not stored any more."""
    error: str
    reminder: int
    note: str
    """Why nobody was notified. Empty: somebody was."""
    door: Door | None
    """Where that is set. None: nowhere."""
    sent: Sequence[Sent]


def list_alerts(connection: Connection, check: CheckRow, shown: Range) -> list[AlertShown]:
    """The alerts of a range, newest first, each with whom it reached."""
    wanted = AlertFilter(
        account_id=check.account_id,
        check_id=check.id,
        from_ms=shown.span[0],
        to_ms=shown.span[1] + 1,
    )
    found = alerting.list_alerts(connection, wanted, limit=_MOST_ALERTS)
    sent = list_sent(connection, check.id, [one.alert.id for one in found])
    return [_show_alert(one, sent.get(one.alert.id, ())) for one in found]


def _show_alert(stored: StoredAlert, sent: Sequence[Sent]) -> AlertShown:
    alert = stored.alert
    state, word = describe_alert(alert.alert_type)
    return AlertShown(
        state=state,
        word=word,
        at_ms=alert.created_ms,
        started_ms=alert.started_ms,
        location=alert.location,
        result_id=alert.result_id,
        error=alert.error or "",
        reminder=alert.reminder,
        note=explain_silence(stored, sent),
        door=find_door(stored, sent),
        sent=sent,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShown:
    """Failures that are alike."""

    id: str
    message: str
    first_ms: int
    last_ms: int


def list_error_groups(
    connection: Connection, check: CheckRow, *, is_hidden: bool
) -> list[GroupShown]:
    """The check's failures that are alike, seen last first: those that are listed, or hidden."""
    find = error_groups.list_archived if is_hidden else error_groups.list_of_check
    found = find(connection, check.account_id, check.id, limit=_MOST_GROUPS)
    return [
        GroupShown(id=one.id, message=one.raw, first_ms=one.first_seen_ms, last_ms=one.last_seen_ms)
        for one in found
    ]


def list_receivers(connection: Connection, check: CheckRow) -> list[tuple[str, str]]:
    """The channels that get the check's alerts: kind, or empty where the name says it, and name."""
    found = alert_channels.find_of_check(connection, check.id, check.group_id)
    return [label_channel(one) for one in found.channels]


def read_settings(
    connection: Connection, check: CheckRow, group: GroupRow | None
) -> SettingsReader:
    """The settings of a check, its group and its account."""
    of_account: Mapping[str, Any] | None = accounts.find_alert_settings(
        connection, check.account_id
    )
    service_id = (check.effective.get("triggerIncident") or {}).get("serviceId", "")
    found = status_pages.find_services(connection, check.account_id, [service_id])
    service_name = found[service_id].name if service_id in found else ""
    return SettingsReader(check, group, of_account, service_name=service_name)
