"""Carries out the steps of one check: its state, alerts, notifications and incident."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection

from service.accounts import actions as accounts
from service.alert_channels import actions as alert_channels
from service.alerting import store
from service.alerting.content import (
    LEVELS,
    Occasion,
    build_alert,
    find_decisive_run,
    find_places,
)
from service.alerting.model import (
    Alert,
    AlertPolicy,
    AlertState,
    AlertType,
    Level,
    Places,
    Seen,
    Silence,
    Step,
    StoredAlert,
    StoredState,
)
from service.alerting.rules import TRANSITIONS, choose_settings, read_policy, step
from service.checks import actions as checks
from service.checks.model import CheckTerms
from service.db.ids import new_id
from service.groups import actions as groups
from service.maintenance import actions as maintenance
from service.results import actions as results
from service.results.model import FinalRun, Record
from service.sessions import actions as sessions
from service.status_pages import actions as status_pages

_NEWEST_RUNS: Final = 200
"""Among so many results of a check its locations are looked for."""


_LOCATIONS_OF_ROUND: Final = 2
"""From so many locations on, runs of one due time count together."""


class CheckSteps:
    """The steps of one check in one transaction; `save` stores what came of them."""

    def __init__(
        self,
        connection: Connection,
        check_id: str,
        terms: CheckTerms,
        stored: StoredState | None,
        *,
        now_ms: int,
    ) -> None:
        """Take what is stored of the check; None: it is clean."""
        self._connection = connection
        self._check_id = check_id
        self._terms = terms
        self._was = stored
        self._stored = stored or StoredState()
        self._now_ms = now_ms
        self._policy = find_policy(connection, terms, now_ms=now_ms)

    def take(self, result_id: str, record: Record, *, later: Collection[str] = ()) -> None:
        """Count a final result; `later`: those that are stored already and count after it."""
        self.tick()
        run = self._find_run(result_id, record, later)
        if run is None or not self._policy.is_activated:
            return
        level = LEVELS[run.status]
        if level is not Level.PASSING:
            self._stored = replace(self._stored, result_id=run.id)
        self._step(Seen(level, run.started_ms), run.id)

    def tick(self) -> None:
        """Do what was to be done by now without a result."""
        self._step(None, self._stored.result_id)

    def end(self) -> None:
        """Resolve the incident of a check that is about to be deleted, and notify people.

        Nothing else would ever close what its alerts opened. Whoever was notified of a failure is
        notified of this, also if the check is muted or deactivated.
        """
        self._resolve_incident()
        state = self._stored.state
        has_news = state.notified is not Level.PASSING
        is_bad = state.level is not Level.PASSING
        alert = self._build(
            TRANSITIONS[state.level, Level.PASSING].alert_type if is_bad else AlertType.RECOVERY,
            started_ms=state.began_ms if has_news else self._now_ms,
            result_id=self._stored.result_id,
        )
        # The results are deleted with the check.
        alert = replace(alert, check_deleted=True, result_id=None, artifacts=())
        silence = self._notify(alert, notifies=True)
        if has_news or silence is None:
            stored = StoredAlert(alert=alert, notified=True, silence=silence)
            store.add_alert(self._connection, stored)

    def save(self) -> None:
        """Store the state if it has changed."""
        if self._stored != self._was:
            store.put_state(
                self._connection, self._check_id, self._stored, is_new=self._was is None
            )

    def _find_run(self, result_id: str, record: Record, later: Collection[str]) -> FinalRun | None:
        """The run that says how the check is doing now. None: nothing new is known.

        Runs that are due together are decided once, and what comes of them after that says nothing.
        """
        expected = self._count_expected(record.session_id)
        if expected < _LOCATIONS_OF_ROUND:
            self._forget_open_round()
            return _as_run(result_id, record) if record.status in LEVELS else None
        due_ms, counted_ms = record.scheduled_ms, self._stored.round_ms
        if counted_ms is None:
            if self._is_decided(due_ms, uncounted={result_id, *later}):
                return None
        elif due_ms <= counted_ms:
            return None
        runs = results.list_runs_due_together(
            self._connection, self._check_id, due_ms=due_ms, session_id=record.session_id
        )
        decisive = self._find_decisive((run for run in runs if run.id not in later), expected)
        open_ms = self._stored.open_round_ms
        if decisive is None:
            # The newest round that is open keeps the state stored until it is decided.
            self._stored = replace(self._stored, open_round_ms=max(due_ms, open_ms or 0))
        else:
            is_open = open_ms is not None and open_ms > due_ms
            self._stored = replace(
                self._stored, round_ms=due_ms, open_round_ms=open_ms if is_open else None
            )
        return decisive

    def _find_decisive(self, runs: Iterable[FinalRun], expected: int) -> FinalRun | None:
        percentage = self._policy.percentage if self._terms.run_parallel else 0
        return find_decisive_run(runs, expected=expected, percentage=percentage)

    def _is_decided(self, due_ms: int, *, uncounted: Collection[str]) -> bool:
        """Whether runs that were due then or later have counted together.

        Of those that passed, nothing is kept but their results. `uncounted`: those that do not
        count yet.
        """
        newest = results.list_newest_runs(self._connection, self._check_id, limit=_NEWEST_RUNS)
        rounds: dict[tuple[int, str | None], list[FinalRun]] = {}
        for run in newest:
            if run.scheduled_ms >= due_ms and run.id not in uncounted:
                rounds.setdefault((run.scheduled_ms, run.session_id), []).append(run)
        for (_, session_id), runs in rounds.items():
            expected = self._count_expected(session_id)
            if expected >= _LOCATIONS_OF_ROUND and self._find_decisive(runs, expected):
                return True
        return False

    def _forget_open_round(self) -> None:
        """Runs of a check that was parallel are not waited for; those of a session are."""
        due_ms = self._stored.open_round_ms
        if due_ms is not None and results.list_runs_due_together(
            self._connection, self._check_id, due_ms=due_ms, session_id=None
        ):
            self._stored = replace(self._stored, open_round_ms=None)

    def _count_expected(self, session_id: str | None) -> int:
        """At how many locations the check has a run of the same due time."""
        if self._terms.run_parallel:
            return len(checks.find_locations(self._connection, self._check_id))
        if session_id is not None:
            return sessions.count_locations(self._connection, session_id)
        return 1

    def _step(self, seen: Seen | None, result_id: str | None) -> None:
        before = self._stored
        after = step(before.state, seen, self._policy, now_ms=self._now_ms)
        self._stored = replace(before, state=after.state)
        if after.alert_type is not AlertType.NO_ALERT:
            self._alert(after, before.state, result_id)
        if after.state.level is Level.FAILING and after.notifies:
            self._open_incident()
        if after.state.level is Level.PASSING and before.state.level is not Level.PASSING:
            self._resolve_incident()
            self._stored = replace(self._stored, result_id=None, alert_id=None, incident_id=None)

    def _open_incident(self) -> None:
        """Open the incident that the check wants; an outage has one."""
        trigger = self._terms.doc.get("triggerIncident")
        if not trigger or self._stored.incident_id is not None:
            return
        incident_id = status_pages.open_incident(
            self._connection,
            self._terms.account_id,
            trigger,
            check_id=self._check_id,
            now_ms=self._now_ms,
        )
        self._stored = replace(self._stored, incident_id=incident_id)

    def _resolve_incident(self) -> None:
        """Resolve the outage's incident, whether or not anybody is notified."""
        incident_id = self._stored.incident_id
        if incident_id is not None:
            status_pages.resolve_incident(
                self._connection, self._terms.account_id, incident_id, now_ms=self._now_ms
            )

    def _alert(self, after: Step, before: AlertState, result_id: str | None) -> None:
        is_over = after.state.level is Level.PASSING
        alert = self._build(
            after.alert_type,
            reminder=after.reminder,
            started_ms=before.began_ms if is_over else after.state.since_ms,
            result_id=result_id,
        )
        silence = self._notify(alert, notifies=after.notifies)
        window = self._policy.window if silence is Silence.MAINTENANCE else None
        stored = StoredAlert(alert=alert, notified=after.notifies, silence=silence, window=window)
        store.add_alert(self._connection, stored)
        if self._stored.alert_id is None:
            self._stored = replace(self._stored, alert_id=alert.id)

    def _notify(self, alert: Alert, *, notifies: bool) -> Silence | None:
        """Notify the channels; why none was. None: one was."""
        is_recovery = alert.alert_type.is_recovery
        if not notifies:
            if self._policy.is_muted:
                return Silence.MUTED
            return Silence.NOT_NOTIFIED_BEFORE if is_recovery else Silence.MAINTENANCE
        if alert_channels.enqueue(self._connection, alert, now_ms=self._now_ms):
            return None
        if alert_channels.has_receivers(self._connection, alert, now_ms=self._now_ms):
            return Silence.NOT_WANTED
        return Silence.NOT_NOTIFIED_BEFORE if is_recovery else Silence.NO_SUBSCRIPTION

    def _build(
        self, alert_type: AlertType, *, started_ms: int, result_id: str | None, reminder: int = 0
    ) -> Alert:
        occasion = Occasion(
            id=new_id(self._now_ms),
            alert_type=alert_type,
            reminder=reminder,
            started_ms=started_ms,
            created_ms=self._now_ms,
            check_id=self._check_id,
            group_name=find_group_name(self._connection, self._terms),
            result=results.find(self._connection, self._check_id, result_id or ""),
        )
        return build_alert(occasion, self._terms, read_places(self._connection, self._check_id))


def _as_run(result_id: str, record: Record) -> FinalRun:
    return FinalRun(
        id=result_id,
        location=record.location_id,
        status=record.status,
        session_id=record.session_id,
        scheduled_ms=record.scheduled_ms,
        started_ms=record.started_ms,
        created_ms=record.started_ms,
    )


def find_policy(connection: Connection, terms: CheckTerms, *, now_ms: int) -> AlertPolicy:
    """The alert settings in force, and whether the check is silent now."""
    settings = choose_settings(
        terms.doc, accounts.find_alert_settings(connection, terms.account_id)
    )
    window = maintenance.find_open(
        connection, terms.account_id, terms.doc.get("tags") or (), now_ms=now_ms
    )
    return read_policy(
        settings,
        is_muted=terms.muted,
        window=window.name if window else None,
        is_activated=terms.activated,
    )


def read_places(connection: Connection, check_id: str) -> Places:
    """How a check is doing at each of its locations."""
    return find_places(
        results.list_newest_runs(connection, check_id, limit=_NEWEST_RUNS),
        last_pass_ms=results.find_last_pass_ms(connection, check_id),
    )


def find_group_name(connection: Connection, terms: CheckTerms) -> str | None:
    """What the check's group is called. None: the check is in none."""
    if terms.group_id is None:
        return None
    return groups.find(connection, terms.account_id, terms.group_id).name
