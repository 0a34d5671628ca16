from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.heartbeats.model import PingState, TimerState, judge_ping
from service.heartbeats.rules import Terms, disproved, judge_timer, rejudge

TERMS = Terms(period_ms=100, grace_ms=30)


@pytest.mark.parametrize(
    ("since_s", "state"),
    [
        (None, PingState.RECEIVED),
        (0, PingState.EARLY),
        (89.9, PingState.EARLY),
        (90, PingState.RECEIVED),
        (100, PingState.RECEIVED),
        (100.1, PingState.GRACE),
        (130, PingState.GRACE),
        (130.1, PingState.LATE),
    ],
)
def test_a_ping_is_judged_by_the_time_since_the_one_before(
    since_s: float | None, state: PingState
) -> None:
    assert judge_ping(since_s, period_s=100, grace_s=30, is_failing=False) is state


def test_a_ping_to_a_failing_check_starts_it_anew() -> None:
    assert judge_ping(1000, period_s=100, grace_s=30, is_failing=True) is PingState.RECEIVED


@pytest.mark.parametrize(
    ("silent_ms", "noticed", "state"),
    [
        (None, {"is_failing": False}, TimerState.NEVER_PINGED),
        (None, {"is_failing": True}, TimerState.NEVER_PINGED),
        (0, {"is_failing": False}, TimerState.RECEIVED),
        (100, {"is_failing": False}, TimerState.RECEIVED),
        (101, {"is_failing": False}, TimerState.GRACE),
        (130, {"is_failing": False}, TimerState.GRACE),
        (131, {"is_failing": False}, TimerState.LATE),
        (131, {"is_failing": True}, TimerState.FAILING),
    ],
)
def test_a_heartbeat_stands_by_its_silence(
    silent_ms: int | None, noticed: dict[str, bool], state: TimerState
) -> None:
    assert judge_timer(silent_ms, TERMS, **noticed) is state


def test_a_ping_in_time_takes_back_a_silence() -> None:
    judged = rejudge([0, 100, 200], marks=[131], failures=[131, 190], terms=TERMS, now_ms=200)
    assert (judged.kept_marks, judged.new_marks) == ((), ())
    assert judged.states == (PingState.RECEIVED, PingState.RECEIVED)


def test_a_silence_that_was_too_long_even_so_stays_with_its_mark() -> None:
    judged = rejudge([0, 140, 300], marks=[131], failures=[131, 290], terms=TERMS, now_ms=300)
    assert (judged.kept_marks, judged.new_marks) == ((131,), (290,))
    assert judged.states == (PingState.RECEIVED, PingState.RECEIVED)


def test_a_silence_after_the_ping_that_nobody_noticed_makes_the_next_one_late() -> None:
    judged = rejudge([0, 50, 200], marks=[], failures=[], terms=TERMS, now_ms=200)
    assert judged.states == (PingState.EARLY, PingState.LATE)


def test_failures_within_the_time_that_a_ping_bought_are_disproved() -> None:
    failures = {"before": 99, "at once": 100, "last": 230, "after": 231}
    assert disproved(failures, ping_ms=100, terms=TERMS) == {"at once": 100, "last": 230}


@given(
    st.lists(st.integers(0, 2_000), min_size=2, max_size=6, unique=True).map(sorted),
    st.lists(st.integers(0, 2_000), max_size=8),
)
def test_a_silence_has_one_mark_if_it_was_found_failing_and_none_otherwise(
    pings: list[int], failures: list[int]
) -> None:
    judged = rejudge(pings, marks=[], failures=failures, terms=TERMS, now_ms=pings[-1])
    for begin, end in pairwise(pings):
        marks = [at for at in judged.new_marks if begin < at < end]
        found = [at for at in failures if begin + TERMS.limit_ms < at < end]
        assert marks == sorted(found)[:1]
    again = rejudge(pings, marks=judged.new_marks, failures=failures, terms=TERMS, now_ms=pings[-1])
    assert (again.kept_marks, again.new_marks) == (judged.new_marks, ())
    assert again.states == judged.states
