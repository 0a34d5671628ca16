from hypothesis import given
from hypothesis import strategies as st

from service.http.rate import Allowance, RateLimit


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


def test_a_whole_minutes_worth_may_come_at_once_and_then_drips() -> None:
    now_s = 0.0
    rate = RateLimit(Allowance(6), monotonic=lambda: now_s)
    assert [rate.wait_s("a") for _ in range(6)] == [0] * 6
    assert rate.wait_s("a") == 10
    assert rate.wait_s("b") == 0
    now_s = 10.0
    assert rate.wait_s("a") == 0
    assert rate.wait_s("a") == 10
