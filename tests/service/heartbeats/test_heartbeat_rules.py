import pytest

from service.heartbeats.model import PingState, judge_ping


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
