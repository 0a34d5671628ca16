from hypothesis import given
from hypothesis import strategies as st

from service.http.rate_limits.rate_limit import (
    ALLOWANCES,
    Allowance,
    RateClass,
    RateLimit,
    RateLimits,
)
from service.settings import Settings


@given(st.integers(1, 50), st.lists(st.floats(0, 30), max_size=60))
def test_no_minute_sees_more_than_twice_the_rate(per_minute: int, gaps_s: list[float]) -> None:
    """A full bucket and what drips in within a minute."""
    now_s = 0.0
    rate = RateLimit(Allowance(per_minute), monotonic=lambda: now_s)
    passed = []
    for gap_s in gaps_s:
        now_s += gap_s
        if rate.wait_s("alice") == 0:
            passed.append(now_s)
    for start_s in passed:
        assert sum(start_s <= at_s < start_s + 60 for at_s in passed) <= 2 * per_minute


@given(st.integers(1, 700), st.integers(0, 25), st.floats(-60, 60))
def test_a_whole_allowance_passes_whenever_it_begins(
    requests: int, power: int, later_s: float
) -> None:
    """Floats lose digits where a clock passes a power of two: 60 s later can be more than 60 s."""
    now_s = abs(2.0**power + later_s)
    rate = RateLimit(Allowance(requests), monotonic=lambda: now_s)
    assert [rate.wait_s("alice") for _ in range(requests)] == [0] * requests
    assert rate.wait_s("alice") > 0


def test_a_whole_minutes_worth_may_come_at_once_and_then_drips() -> None:
    now_s = 0.0
    rate = RateLimit(Allowance(6), monotonic=lambda: now_s)
    assert [rate.wait_s("a") for _ in range(6)] == [0] * 6
    assert rate.wait_s("a") == 10
    assert rate.wait_s("b") == 0
    now_s = 10.0
    assert rate.wait_s("a") == 0
    assert rate.wait_s("a") == 10


def test_what_goes_on_elsewhere_counts_and_leaves_nobody_worse_than_refused() -> None:
    now_s = 0.0
    rate = RateLimit(Allowance(6), monotonic=lambda: now_s)
    rate.count_elsewhere("a", 4)
    assert [rate.wait_s("a") for _ in range(3)] == [0, 0, 10]
    rate.count_elsewhere("a", 1_000)
    assert (rate.wait_s("a"), rate.wait_s("b")) == (10, 0)


def test_each_request_that_went_on_is_told_once_and_none_that_was_refused() -> None:
    rate = RateLimit(Allowance(2), monotonic=lambda: 0.0)
    for _ in range(3):
        rate.wait_s("a")
    rate.count_elsewhere("b", 1)
    assert rate.take_untold() == [("a", 2)]
    assert rate.take_untold() == []


def test_requests_are_told_once_they_are_a_hundredth_of_the_allowance() -> None:
    rate = RateLimit(Allowance(300), monotonic=lambda: 0.0)
    told = []
    for _ in range(4):
        rate.wait_s("a")
        told += rate.take_untold()
    assert told == [("a", 3)]


def test_other_processes_count_a_client_without_being_told_its_name() -> None:
    here, elsewhere = (RateLimits(monotonic=lambda: 0.0) for _ in range(2))
    for _ in range(10):
        here.wait_s(RateClass.TRIGGER_LINKS, "a-secret-token")
    [(kind, told, requests)] = here.take_untold()
    assert (kind, requests) == (RateClass.TRIGGER_LINKS, 10)
    assert "secret" not in told
    elsewhere.count_elsewhere(kind, told, requests)
    assert elsewhere.wait_s(RateClass.TRIGGER_LINKS, "a-secret-token") > 0
    assert elsewhere.wait_s(RateClass.TRIGGER_LINKS, "another-token") == 0


def test_without_settings_there_are_as_many_requests_as_at_the_established_service() -> None:
    assert ALLOWANCES[RateClass.GENERAL] == Allowance(600)
    assert ALLOWANCES[RateClass.RESULT_LISTS] == Allowance(60)
    assert ALLOWANCES[RateClass.LOCATION_METRICS] == Allowance(300, 24 * 3600)
    assert ALLOWANCES[RateClass.TRIGGER_LINKS] == Allowance(10)


def test_settings_that_are_not_given_are_the_usual_numbers() -> None:
    settings = Settings()
    assert settings.api_requests == ALLOWANCES[RateClass.GENERAL].requests
    assert settings.result_lists == ALLOWANCES[RateClass.RESULT_LISTS].requests
    assert settings.agent_requests == ALLOWANCES[RateClass.AGENTS].requests
    assert settings.refused_requests == ALLOWANCES[RateClass.REFUSED].requests
