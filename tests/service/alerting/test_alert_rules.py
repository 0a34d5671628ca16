"""The whole transition table, and every rule around it."""

from dataclasses import replace
from typing import Any

import pytest

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
)
from service.alerting.rules import (
    TRANSITIONS,
    choose_settings,
    judge_round,
    read_policy,
    step,
)

START = 1_795_255_200_000
MINUTE = 60_000
PASSING, DEGRADED, FAILING = Level.PASSING, Level.DEGRADED, Level.FAILING
LETTERS = {"P": PASSING, "D": DEGRADED, "F": FAILING}
BY_TIME = AlertPolicy(failing_ms=5 * MINUTE)
Told = tuple[AlertType, bool, int]
A = AlertType


def after(letters: str, policy: AlertPolicy | None = None) -> AlertState:
    """The state after runs a minute apart, the last of them at `at(letters)`."""
    return play(letters, policy)[0]


def at(letters: str) -> int:
    return START + len(letters) * MINUTE


def play(letters: str, policy: AlertPolicy | None = None) -> tuple[AlertState, list[Told]]:
    """The state after runs a minute apart, and the alerts on the way; timers do not run."""
    state, made = CLEAN, []
    for number, letter in enumerate(letters, start=1):
        now = START + number * MINUTE
        taken = step(state, Seen(LETTERS[letter], now), policy or AlertPolicy(), now_ms=now)
        state = taken.state
        if taken.alert_type is not A.NO_ALERT:
            made.append((taken.alert_type, taken.notifies, taken.reminder))
    return state, made


def types(letters: str, policy: AlertPolicy | None = None) -> list[AlertType]:
    return [one[0] for one in play(letters, policy)[1]]


def tick(state: AlertState, policy: AlertPolicy, now_ms: int) -> Step:
    return step(state, None, policy, now_ms=now_ms)


@pytest.mark.parametrize(("levels", "transition"), TRANSITIONS.items())
def test_each_transition_makes_the_alert_of_the_table_by_its_condition(
    levels: tuple[Level, Level], transition: Any
) -> None:
    before, now = levels
    for recorded in {PASSING, before}:
        for failed_runs in (1, 2, 3):
            state = replace(
                CLEAN,
                level=before,
                since_ms=START,
                began_ms=START,
                runs=0 if before is PASSING else 1,
                recorded=recorded,
                notified=recorded,
            )
            policy = AlertPolicy(failed_runs=failed_runs)
            taken = step(state, Seen(now, START + 1), policy, now_ms=START + 1)
            runs = state.runs + 1
            holds = {
                Condition.NEVER: False,
                Condition.ALWAYS: True,
                Condition.AFTER_ALERT: recorded is not PASSING,
                Condition.AT_THRESHOLD: recorded is not now and runs >= failed_runs,
            }[transition.condition]
            assert taken.alert_type is (transition.alert_type if holds else A.NO_ALERT)
            assert taken.notifies is holds


def test_the_table_has_each_pair_of_levels_and_each_type_but_that_of_certificates() -> None:
    assert set(TRANSITIONS) == {(one, other) for one in Level for other in Level}
    assert {one.alert_type for one in TRANSITIONS.values()} == set(AlertType) - {A.SSL}


@pytest.mark.parametrize(
    ("letters", "failed_runs", "expected"),
    [
        ("PPP", 1, []),
        ("F", 1, [A.FAILURE]),
        ("FFF", 1, [A.FAILURE]),
        ("F", 2, []),
        ("FF", 2, [A.FAILURE_REMAIN]),
        ("FFFFF", 2, [A.FAILURE_REMAIN]),
        ("FPFPF", 2, []),
        ("FFP", 2, [A.FAILURE_REMAIN, A.RECOVERY]),
        ("FP", 1, [A.FAILURE, A.RECOVERY]),
        ("D", 1, [A.DEGRADED]),
        ("DDD", 3, [A.DEGRADED_REMAIN]),
        ("DP", 2, []),
        ("DP", 1, [A.DEGRADED, A.DEGRADED_RECOVERY]),
        ("DF", 5, [A.DEGRADED_FAILURE]),
        ("FD", 5, [A.FAILURE_DEGRADED]),
        ("FDP", 5, [A.FAILURE_DEGRADED, A.DEGRADED_RECOVERY]),
        ("DFP", 5, [A.DEGRADED_FAILURE, A.RECOVERY]),
        ("FDFD", 1, [A.FAILURE, A.FAILURE_DEGRADED, A.DEGRADED_FAILURE, A.FAILURE_DEGRADED]),
        ("FPF", 1, [A.FAILURE, A.RECOVERY, A.FAILURE]),
    ],
)
def test_runs_in_a_row_make_alerts(
    letters: str, failed_runs: int, expected: list[AlertType]
) -> None:
    assert types(letters, AlertPolicy(failed_runs=failed_runs)) == expected


def test_a_check_that_passes_again_leaves_no_trace() -> None:
    assert after("DFDP") == CLEAN


def test_a_state_says_since_when_it_lasts_and_since_when_the_check_has_not_passed() -> None:
    state = after("PDDFF")
    assert (state.began_ms, state.since_ms, state.runs) == (at("PD"), at("PDDF"), 4)


def test_with_time_based_escalation_the_timer_makes_the_alert() -> None:
    state = after("F", BY_TIME)
    due = at("F") + 5 * MINUTE
    assert state.timer_ms == due
    assert tick(state, BY_TIME, due - 1) == Step(state)
    fired = tick(state, BY_TIME, due)
    assert (fired.alert_type, fired.notifies, fired.reminder) == (A.FAILURE_REMAIN, True, 0)
    assert fired.timer_ms is None


def test_with_time_based_escalation_a_run_at_the_threshold_makes_the_alert() -> None:
    assert types("FFFFF", BY_TIME) == []
    assert types("FFFFFF", BY_TIME) == [A.FAILURE_REMAIN]


def test_a_check_that_passes_before_the_threshold_alerts_nobody() -> None:
    state, made = play("FFP", BY_TIME)
    assert (state.timer_ms, made) == (None, [])


def test_a_threshold_that_was_put_off_meanwhile_counts() -> None:
    later = AlertPolicy(failing_ms=30 * MINUTE)
    waited = tick(after("F", BY_TIME), later, at("F") + 5 * MINUTE)
    assert (waited.alert_type, waited.timer_ms) == (A.NO_ALERT, at("F") + 30 * MINUTE)


def test_reminders_follow_an_alert_as_often_as_they_are_wanted() -> None:
    policy = AlertPolicy(reminders=2, reminder_ms=10 * MINUTE)
    state, made = after("F", policy), []
    for minute in range(1, 60):
        taken = tick(state, policy, at("F") + minute * MINUTE)
        state = taken.state
        if taken.alert_type is not A.NO_ALERT:
            made.append((minute, taken.alert_type, taken.notifies, taken.reminder))
    assert made == [(10, A.FAILURE_REMAIN, True, 1), (20, A.FAILURE_REMAIN, True, 2)]
    assert state.timer_ms is None


def test_reminders_without_end_have_none() -> None:
    policy = AlertPolicy(reminders=UNLIMITED, reminder_ms=MINUTE)
    state = replace(after("D", policy), reminders=UNLIMITED)
    fired = tick(state, policy, at("D") + MINUTE)
    assert (fired.alert_type, fired.reminder) == (A.DEGRADED_REMAIN, UNLIMITED + 1)
    assert fired.timer_ms == at("D") + 2 * MINUTE


def test_runs_between_reminders_change_neither_their_time_nor_their_number() -> None:
    policy = AlertPolicy(reminders=1, reminder_ms=10 * MINUTE)
    state = after("FFFF", policy)
    assert (state.timer_ms, state.reminders) == (at("F") + 10 * MINUTE, 0)


def test_a_late_reminder_comes_once_and_keeps_the_rhythm() -> None:
    policy = AlertPolicy(reminders=5, reminder_ms=10 * MINUTE)
    fired = tick(after("F", policy), policy, at("F") + 47 * MINUTE)
    assert (fired.reminder, fired.timer_ms) == (1, at("F") + 50 * MINUTE)


def test_reminders_begin_anew_with_a_worse_level() -> None:
    policy = AlertPolicy(reminders=1, reminder_ms=10 * MINUTE)
    reminded = tick(after("D", policy), policy, at("D") + 10 * MINUTE).state
    worse = step(reminded, Seen(FAILING, at("D")), policy, now_ms=at("D") + 11 * MINUTE)
    assert (worse.state.reminders, worse.timer_ms) == (0, at("D") + 21 * MINUTE)


def test_reminders_that_were_switched_off_meanwhile_do_not_come() -> None:
    state = after("F", AlertPolicy(reminders=1))
    assert state.timer_ms is not None
    taken = tick(state, AlertPolicy(), state.timer_ms)
    assert (taken.alert_type, taken.timer_ms) == (A.NO_ALERT, None)


def test_recovery_ends_reminders() -> None:
    assert after("FP", AlertPolicy(reminders=5)).timer_ms is None


def test_a_silent_check_records_alerts_of_which_nobody_is_notified() -> None:
    silent = AlertPolicy(is_silent=True)
    assert play("FFP", silent)[1] == [(A.FAILURE, False, 0), (A.RECOVERY, False, 0)]
    assert play("DF", silent)[1] == [(A.DEGRADED, False, 0), (A.DEGRADED_FAILURE, False, 0)]


def test_what_fails_still_when_the_silence_ends_is_reported_with_the_next_run() -> None:
    state = after("FF", AlertPolicy(failed_runs=2, is_silent=True))
    taken = step(state, Seen(FAILING, at("FFF")), AlertPolicy(failed_runs=5), now_ms=at("FFF"))
    assert (taken.alert_type, taken.notifies) == (A.FAILURE_REMAIN, True)
    again = step(taken.state, Seen(FAILING, at("F4")), AlertPolicy(), now_ms=at("F4"))
    assert again.alert_type is A.NO_ALERT


def test_a_change_in_silence_is_reported_when_it_ends() -> None:
    made = after("F")
    silent = AlertPolicy(is_silent=True)
    changed = step(made, Seen(DEGRADED, at("FD")), silent, now_ms=at("FD"))
    assert (changed.alert_type, changed.notifies) == (A.FAILURE_DEGRADED, False)
    ended = step(changed.state, Seen(DEGRADED, at("FDD")), AlertPolicy(), now_ms=at("FDD"))
    assert (ended.alert_type, ended.notifies) == (A.DEGRADED_REMAIN, True)


def test_recovery_in_silence_goes_to_whoever_was_notified_of_the_failure() -> None:
    taken = step(after("F"), Seen(PASSING, at("FP")), AlertPolicy(is_silent=True), now_ms=at("FP"))
    assert taken == Step(CLEAN, A.RECOVERY, notifies=True)


def test_a_muted_check_tells_nobody_of_a_recovery_either() -> None:
    muted = read_policy({}, is_muted=True)
    taken = step(after("F"), Seen(PASSING, at("FP")), muted, now_ms=at("FP"))
    assert taken == Step(CLEAN, A.RECOVERY, notifies=False)


def test_recovery_of_what_nobody_was_notified_of_is_not_sent() -> None:
    state = after("F", AlertPolicy(is_silent=True))
    taken = step(state, Seen(PASSING, at("FP")), AlertPolicy(), now_ms=at("FP"))
    assert taken == Step(CLEAN, A.RECOVERY, notifies=False)


def test_a_silent_check_puts_reminders_off_and_counts_none() -> None:
    policy = AlertPolicy(reminders=1, reminder_ms=10 * MINUTE)
    due = at("F") + 10 * MINUTE
    quiet = tick(after("F", policy), replace(policy, is_silent=True), due)
    assert (quiet.alert_type, quiet.state.reminders) == (A.NO_ALERT, 0)
    fired = tick(quiet.state, policy, due + 10 * MINUTE)
    assert (fired.alert_type, fired.reminder) == (A.FAILURE_REMAIN, 1)


def test_a_silent_check_escalates_by_time_unheard() -> None:
    silent = replace(BY_TIME, is_silent=True)
    fired = tick(after("F", silent), silent, at("F") + 5 * MINUTE)
    assert (fired.alert_type, fired.notifies, fired.timer_ms) == (A.FAILURE_REMAIN, False, None)


def test_nothing_counts_of_a_deactivated_check() -> None:
    policy = AlertPolicy(reminders=1)
    failing = after("F", policy)
    off = replace(policy, is_activated=False)
    waiting = replace(failing, timer_ms=None)
    assert tick(failing, off, at("F") + 60 * MINUTE) == Step(waiting)
    assert step(failing, Seen(PASSING, at("FP")), off, now_ms=at("FP")) == Step(waiting)
    again = step(waiting, Seen(FAILING, at("FF")), policy, now_ms=at("FF"))
    assert again.timer_ms == failing.timer_ms


@pytest.mark.parametrize(
    ("letters", "waiting", "percentage", "level"),
    [
        ("", 0, 0, None),
        ("", 2, 0, None),
        ("P", 1, 0, None),
        ("PP", 0, 0, PASSING),
        ("F", 2, 0, FAILING),
        ("FPP", 0, 0, FAILING),
        ("DPP", 0, 0, DEGRADED),
        ("DP", 1, 0, None),
        ("F", 2, 50, None),
        ("FP", 1, 50, None),
        ("FPP", 0, 50, PASSING),
        ("FF", 1, 50, FAILING),
        ("F", 1, 50, FAILING),
        ("FPP", 0, 30, FAILING),
        ("FDPP", 0, 50, DEGRADED),
        ("FDDDD", 0, 50, DEGRADED),
        ("FP", 0, 50, FAILING),
        ("F", 0, 100, FAILING),
        ("FFFFFFFFF", 1, 100, None),
        ("FPPPPPPPPP", 0, 10, FAILING),
        ("FPPPPPPPPPP", 0, 10, PASSING),
        ("F" * 10 + "P" * 91, 0, 10, PASSING),
    ],
)
def test_runs_of_one_time_count_together(
    letters: str, waiting: int, percentage: int, level: Level | None
) -> None:
    levels = tuple(LETTERS[letter] for letter in letters)
    assert judge_round(Round(levels, waiting), percentage) is level


def test_settings_are_read_with_their_defaults() -> None:
    assert read_policy({}) == AlertPolicy()
    timed = {
        "escalationType": "TIME_BASED",
        "runBasedEscalation": {"failedRunThreshold": 3},
        "timeBasedEscalation": {"minutesFailingThreshold": 15},
        "reminders": {"amount": 2, "interval": 10},
        "parallelRunFailureThreshold": {"enabled": True, "percentage": 40},
    }
    assert read_policy(timed, window="Deploy", is_activated=False) == AlertPolicy(
        failed_runs=3,
        failing_ms=15 * MINUTE,
        reminders=2,
        reminder_ms=10 * MINUTE,
        percentage=40,
        is_silent=True,
        window="Deploy",
        is_activated=False,
    )
    off = {"parallelRunFailureThreshold": {"enabled": False, "percentage": 40}}
    assert read_policy(off).percentage == 0
    assert read_policy({"parallelRunFailureThreshold": {"enabled": True}}).percentage == 10
    assert read_policy({"escalationType": "TIME_BASED"}).failing_ms == 5 * MINUTE


def test_a_check_goes_by_its_own_settings_only_if_it_has_any() -> None:
    own, account = {"escalationType": "TIME_BASED"}, {"escalationType": "RUN_BASED"}
    choosing = {"useGlobalAlertSettings": False, "alertSettings": own}
    assert choose_settings(choosing, account) == own
    assert choose_settings({"useGlobalAlertSettings": True, "alertSettings": own}, account) == (
        account
    )
    assert choose_settings({}, account) == account
    assert choose_settings({}, None) == {}
    assert choose_settings({"useGlobalAlertSettings": False, "alertSettings": None}, account) == {}
