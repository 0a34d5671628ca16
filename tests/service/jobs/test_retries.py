import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.checks import CheckType
from contract.result import Failure, FailureKind
from service.jobs.rules import RetryStrategy, RetryType, retry_delay_ms, strategy_of

REFUSED = Failure(kind=FailureKind.CONNECT, message="refused")
WRONG = Failure(kind=FailureKind.ASSERTION, message="not 200")


def delays(strategy: RetryStrategy, failure: Failure = REFUSED) -> list[int]:
    """The waits of a check that always fails at once."""
    found: list[int] = []
    while len(found) < 20:
        delay_ms = retry_delay_ms(
            strategy, attempt=len(found) + 1, elapsed_ms=sum(found), failure=failure
        )
        if delay_ms is None:
            return found
        found.append(delay_ms)
    raise AssertionError("it never stops")


@pytest.mark.parametrize(
    ("strategy", "waits_s"),
    [
        (RetryStrategy(type=RetryType.FIXED, base_backoff_s=5, max_retries=3), [5, 5, 5]),
        (RetryStrategy(type=RetryType.LINEAR, base_backoff_s=5, max_retries=3), [5, 10, 15]),
        (RetryStrategy(type=RetryType.EXPONENTIAL, base_backoff_s=5, max_retries=3), [5, 25, 125]),
        (RetryStrategy(type=RetryType.SINGLE_RETRY, base_backoff_s=7, max_retries=9), [7]),
        (RetryStrategy(type=RetryType.FIXED), [60, 60]),
        # The second wait of 3600 s would pass the longest duration.
        (RetryStrategy(type=RetryType.EXPONENTIAL, max_retries=10), [60]),
        (RetryStrategy(type=RetryType.FIXED, max_duration_s=0), []),
    ],
)
def test_waits_grow_as_the_strategy_says(strategy: RetryStrategy, waits_s: list[int]) -> None:
    assert delays(strategy) == [wait_s * 1000 for wait_s in waits_s]


def test_the_longest_duration_includes_the_runs_own_time() -> None:
    strategy = RetryStrategy(type=RetryType.FIXED, base_backoff_s=10, max_duration_s=30)
    assert retry_delay_ms(strategy, attempt=1, elapsed_ms=20_000, failure=REFUSED) == 10_000
    assert retry_delay_ms(strategy, attempt=1, elapsed_ms=20_001, failure=REFUSED) is None


@pytest.mark.parametrize("kind", [FailureKind.DNS, FailureKind.CONNECT, FailureKind.TIMEOUT])
def test_only_on_network_errors_retries_those(kind: FailureKind) -> None:
    strategy = RetryStrategy(type=RetryType.SINGLE_RETRY, only_network_errors=True)
    assert delays(strategy, Failure(kind=kind, message="")) == [60_000]


def test_only_on_network_errors_knows_them_by_code_too() -> None:
    strategy = RetryStrategy(type=RetryType.SINGLE_RETRY, only_network_errors=True)
    reset = Failure(kind=FailureKind.PROTOCOL, message="", detail={"code": "ECONNRESET"})
    assert delays(strategy, reset) == [60_000]


@pytest.mark.parametrize(
    "kind", [FailureKind.HTTP_STATUS, FailureKind.ASSERTION, FailureKind.TOO_SLOW, FailureKind.TLS]
)
def test_only_on_network_errors_retries_no_other(kind: FailureKind) -> None:
    strategy = RetryStrategy(type=RetryType.SINGLE_RETRY, only_network_errors=True)
    assert delays(strategy, Failure(kind=kind, message="")) == []


def test_a_strategy_is_read_as_the_api_shows_it() -> None:
    doc = {
        "retryStrategy": {
            "type": "LINEAR",
            "baseBackoffSeconds": 0,
            "maxRetries": 4,
            "maxDurationSeconds": 120,
            "sameRegion": False,
            "onlyOn": ["NETWORK_ERROR"],
        }
    }
    assert strategy_of(doc, CheckType.URL) == RetryStrategy(
        type=RetryType.LINEAR,
        base_backoff_s=0,
        max_retries=4,
        max_duration_s=120,
        same_region=False,
        only_network_errors=True,
    )


def test_without_a_strategy_a_double_check_looks_once_more_at_once() -> None:
    strategy = strategy_of({"retryStrategy": None, "doubleCheck": True}, CheckType.URL)
    assert strategy is not None
    assert delays(strategy) == [0]
    assert not strategy.same_region


def test_without_a_strategy_and_double_check_a_failure_is_final() -> None:
    assert strategy_of({"retryStrategy": None, "doubleCheck": False}, CheckType.URL) is None


@pytest.mark.parametrize("given", ["FALLBACK", {"type": "FIBONACCI"}, {}])
def test_a_strategy_that_is_none_of_ours_means_no_retries(given: object) -> None:
    assert strategy_of({"retryStrategy": given, "doubleCheck": False}, CheckType.URL) is None


@pytest.mark.parametrize("check_type", [CheckType.HEARTBEAT, CheckType.PLAYWRIGHT])
def test_some_types_are_never_retried(check_type: CheckType) -> None:
    assert strategy_of({"retryStrategy": {"type": "FIXED"}}, check_type) is None


@given(
    st.sampled_from(RetryType),
    st.floats(0, 600),
    st.integers(1, 10),
    st.floats(0, 600),
)
def test_retries_always_come_to_an_end_within_their_bounds(
    kind: RetryType, base_s: float, most: int, longest_s: float
) -> None:
    strategy = RetryStrategy(
        type=kind, base_backoff_s=base_s, max_retries=most, max_duration_s=longest_s
    )
    waits = delays(strategy)
    assert len(waits) <= most
    if kind is not RetryType.SINGLE_RETRY:
        assert sum(waits) <= longest_s * 1000


def test_a_failure_without_a_cause_is_no_network_error() -> None:
    strategy = RetryStrategy(type=RetryType.SINGLE_RETRY, only_network_errors=True)
    assert retry_delay_ms(strategy, attempt=1, elapsed_ms=0, failure=None) is None
