"""Full jitter: random waits below a doubling bound."""

from hypothesis import given
from hypothesis import strategies as st

from agent.api_client.errors import KeyRefusedError, RequestRefusedError, ServiceAwayError
from agent.api_client.outage import Outage
from agent.api_client.retry import LONGEST_RETRY_AFTER_S, Backoff, Pace

AWAY = ServiceAwayError("away")


@given(failures=st.integers(1, 2000), chance=st.floats(0, 1, exclude_max=True))
def test_a_wait_never_leaves_its_bounds(failures: int, chance: float) -> None:
    backoff = Backoff(Pace(), Outage(), chance=lambda: chance)
    for _ in range(failures):
        wait_s = backoff.next_wait_s(AWAY)
    assert 0 <= wait_s <= 10


def test_the_bound_doubles_and_a_service_that_is_away_is_asked_every_ten_seconds() -> None:
    backoff = Backoff(Pace(), Outage(), chance=lambda: 1.0)
    assert [backoff.next_wait_s(AWAY) for _ in range(6)] == [1, 2, 4, 8, 10, 10]


def test_a_service_that_refuses_is_asked_once_a_minute() -> None:
    backoff = Backoff(Pace(), Outage(), chance=lambda: 1.0)
    refused = KeyRefusedError("no")
    assert [backoff.next_wait_s(refused) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_success_starts_over() -> None:
    backoff = Backoff(Pace(), Outage(), chance=lambda: 1.0)
    backoff.next_wait_s(AWAY)
    backoff.reset()
    assert backoff.next_wait_s(RequestRefusedError("no")) == 1


@given(asked_s=st.floats(0, 1e9), chance=st.floats(0, 1, exclude_max=True))
def test_agents_that_were_told_the_same_do_not_come_back_together(
    asked_s: float, chance: float
) -> None:
    backoff = Backoff(Pace(), Outage(), chance=lambda: chance)
    wait_s = backoff.next_wait_s(ServiceAwayError("busy", retry_after_s=asked_s))
    assert wait_s == min(asked_s, LONGEST_RETRY_AFTER_S) + chance
