"""When a result becomes an alert: a step from one state of a check to the next. Pure.

Results count in the order in which the service took them, and live alerts, timers and previews all
go by `step`.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from service.alerting.model import (
    CLEAN,
    UNLIMITED,
    AlertPolicy,
    AlertState,
    AlertType,
    Condition,
    Level,
    Round,
    Seen,
    Step,
    Transition,
)

TRANSITIONS: Final[Mapping[tuple[Level, Level], Transition]] = MappingProxyType(
    {
        (Level.PASSING, Level.PASSING): Transition(AlertType.NO_ALERT, Condition.NEVER),
        (Level.PASSING, Level.DEGRADED): Transition(AlertType.DEGRADED, Condition.AT_THRESHOLD),
        (Level.PASSING, Level.FAILING): Transition(AlertType.FAILURE, Condition.AT_THRESHOLD),
        (Level.DEGRADED, Level.DEGRADED): Transition(
            AlertType.DEGRADED_REMAIN, Condition.AT_THRESHOLD
        ),
        (Level.FAILING, Level.FAILING): Transition(
            AlertType.FAILURE_REMAIN, Condition.AT_THRESHOLD
        ),
        (Level.DEGRADED, Level.FAILING): Transition(AlertType.DEGRADED_FAILURE, Condition.ALWAYS),
        (Level.FAILING, Level.DEGRADED): Transition(AlertType.FAILURE_DEGRADED, Condition.ALWAYS),
        (Level.DEGRADED, Level.PASSING): Transition(
            AlertType.DEGRADED_RECOVERY, Condition.AFTER_ALERT
        ),
        (Level.FAILING, Level.PASSING): Transition(AlertType.RECOVERY, Condition.AFTER_ALERT),
    }
)
"""From each level to each; `docs/alerting.md` shows it."""
_MINUTE_MS: Final = 60_000


def step(state: AlertState, seen: Seen | None, policy: AlertPolicy, *, now_ms: int) -> Step:
    """What a result, or without one the time that has passed, makes of a state."""
    if not policy.is_activated:
        return Step(replace(state, timer_ms=None))
    taken = _tick(state, policy, now_ms) if seen is None else _take(state, seen, policy, now_ms)
    return taken._replace(state=_wind_timer(taken.state, policy))


def _take(state: AlertState, seen: Seen, policy: AlertPolicy, now_ms: int) -> Step:
    alert_type, condition = TRANSITIONS[state.level, seen.level]
    if seen.level is Level.PASSING:
        if not _holds(condition, state, policy, now_ms):
            return Step(CLEAN)
        # Silence keeps new alerts back; whoever was notified of a failure is notified of its end,
        # unless the check is muted: the specification sends nothing then, no recovery either.
        has_news = state.notified is not Level.PASSING
        return Step(CLEAN, alert_type, notifies=has_news and not policy.is_muted)
    moved = _move(state, seen)
    if not _holds(condition, moved, policy, now_ms):
        return Step(moved)
    return _alert(moved, alert_type, policy, at_ms=now_ms)


def _move(state: AlertState, seen: Seen) -> AlertState:
    """The state of a check that did not pass once more."""
    runs = state.runs + 1
    if seen.level is state.level:
        return replace(state, runs=runs)
    began_ms = seen.started_ms if state.level is Level.PASSING else state.began_ms
    return replace(state, level=seen.level, since_ms=seen.started_ms, began_ms=began_ms, runs=runs)


def _holds(condition: Condition, state: AlertState, policy: AlertPolicy, now_ms: int) -> bool:
    match condition:
        case Condition.NEVER:
            return False
        case Condition.ALWAYS:
            return True
        case Condition.AFTER_ALERT:
            return state.recorded is not Level.PASSING
        case Condition.AT_THRESHOLD:
            return _is_due(state, policy, now_ms)


def _is_due(state: AlertState, policy: AlertPolicy, now_ms: int) -> bool:
    """Whether an alert of this level was not made yet, and the threshold is reached."""
    known = state.recorded if policy.is_silent else state.notified
    return known is not state.level and _is_at_threshold(state, policy, now_ms)


def _is_at_threshold(state: AlertState, policy: AlertPolicy, now_ms: int) -> bool:
    """An alert that nobody was notified of has passed the threshold before."""
    if state.recorded is not Level.PASSING:
        return True
    if policy.failing_ms is None:
        return state.runs >= policy.failed_runs
    return now_ms >= state.since_ms + policy.failing_ms


def _alert(state: AlertState, alert_type: AlertType, policy: AlertPolicy, *, at_ms: int) -> Step:
    alerted = replace(state, recorded=state.level)
    if policy.is_silent:
        return Step(alerted, alert_type)
    notified = replace(alerted, notified=state.level, noticed_ms=at_ms, reminders=0)
    return Step(notified, alert_type, notifies=True)


def _tick(state: AlertState, policy: AlertPolicy, now_ms: int) -> Step:
    if state.timer_ms is None or now_ms < state.timer_ms:
        return Step(state)
    # However late it is, it counts once, and the next one follows in the old rhythm.
    at_ms = now_ms - (now_ms - state.timer_ms) % policy.reminder_ms
    alert_type, condition = TRANSITIONS[state.level, state.level]
    if state.notified is state.level:
        return _remind(state, alert_type, policy, at_ms)
    if not _holds(condition, state, policy, now_ms):
        return Step(state)
    return _alert(state, alert_type, policy, at_ms=at_ms)


def _remind(state: AlertState, alert_type: AlertType, policy: AlertPolicy, at_ms: int) -> Step:
    if policy.is_silent or not _has_reminders(state, policy):
        return Step(replace(state, noticed_ms=at_ms))
    number = state.reminders + 1
    reminded = replace(state, noticed_ms=at_ms, reminders=number)
    return Step(reminded, alert_type, notifies=True, reminder=number)


def _has_reminders(state: AlertState, policy: AlertPolicy) -> bool:
    return policy.reminders >= UNLIMITED or state.reminders < policy.reminders


def _wind_timer(state: AlertState, policy: AlertPolicy) -> AlertState:
    return replace(state, timer_ms=_find_timer_ms(state, policy))


def _find_timer_ms(state: AlertState, policy: AlertPolicy) -> int | None:
    if state.level is Level.PASSING:
        return None
    if state.notified is state.level:
        return state.noticed_ms + policy.reminder_ms if _has_reminders(state, policy) else None
    if policy.failing_ms is not None and state.recorded is Level.PASSING:
        return state.since_ms + policy.failing_ms
    return None


def judge_round(round_: Round, percentage: int) -> Level | None:
    """How runs that were due at one time at several locations count together.

    None: it takes further results to say so, or nobody looked.
    """
    failing = sum(level is Level.FAILING for level in round_.levels)
    if _is_share(failing, len(round_.levels) + round_.waiting, percentage):
        return Level.FAILING
    if round_.waiting or not round_.levels:
        return None
    bad = sum(level is not Level.PASSING for level in round_.levels)
    return Level.DEGRADED if _is_share(bad, len(round_.levels), percentage) else Level.PASSING


def _is_share(some: int, of_all: int, percentage: int) -> bool:
    return some > 0 and 100 * some >= percentage * of_all


def read_policy(
    settings: Mapping[str, Any],
    *,
    is_muted: bool = False,
    window: str | None = None,
    is_activated: bool = True,
) -> AlertPolicy:
    """The policy of alert settings as the API has them; what is missing has its default.

    `window`: the name of the maintenance window that is open. None: none is.
    """
    reminders = settings.get("reminders") or {}
    parallel = settings.get("parallelRunFailureThreshold") or {}
    by_runs = settings.get("runBasedEscalation") or {}
    by_time = settings.get("timeBasedEscalation") or {}
    is_timed = settings.get("escalationType") == "TIME_BASED"
    minutes = by_time.get("minutesFailingThreshold") or 5
    return AlertPolicy(
        failed_runs=by_runs.get("failedRunThreshold") or 1,
        failing_ms=minutes * _MINUTE_MS if is_timed else None,
        reminders=reminders.get("amount") or 0,
        reminder_ms=(reminders.get("interval") or 5) * _MINUTE_MS,
        percentage=(parallel.get("percentage") or 10) if parallel.get("enabled") else 0,
        is_muted=is_muted,
        is_silent=is_muted or window is not None,
        window=window,
        is_activated=is_activated,
    )


def choose_settings(
    doc: Mapping[str, Any], of_account: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    """The alert settings in force: the check's, or its group's, which `doc` has, or the account's.

    `of_account`: None if nobody has chosen any.
    """
    if doc.get("useGlobalAlertSettings", True) is False:
        return doc.get("alertSettings") or {}
    return of_account or {}
