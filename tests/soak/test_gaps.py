"""The soak's figures on gaps: due times without a record, and silence after faults."""

import pytest

from tests.soak.gaps import count_holes, count_wrong, p99, silences_s


@pytest.mark.parametrize(
    ("records", "holes"),
    [
        ([(0, 1), (10, 1), (20, 1)], 0),
        ([(0, 1), (30, 1)], 2),
        ([(0, 1), (20, 2), (30, 1)], 0),
        ([(30, 1), (0, 1), (10, 1)], 1),
        ([(0, 1), (7, 1), (17, 1), (37, 1)], 1),
        ([(10, 1)], 2),
        ([], 1),
    ],
)
def test_a_due_time_that_no_record_stands_for_is_a_hole(
    records: list[tuple[int, int]], holes: int
) -> None:
    until_ms = max((due_ms for due_ms, _ in records), default=0)
    until_ms = 35 if until_ms == 10 else until_ms + 9
    assert count_holes({"check": records}, {"check": 10}, until_ms=until_ms) == holes


@pytest.mark.parametrize(("until_ms", "holes"), [(14, 0), (15, 1), (25, 2)])
def test_the_second_run_may_come_one_and_a_half_periods_after_the_first(
    until_ms: int, holes: int
) -> None:
    assert count_holes({"check": [(0, 1)]}, {"check": 10}, until_ms=until_ms) == holes


def test_the_holes_of_each_check_count() -> None:
    records = {"a": [(0, 1), (30, 1)], "b": [(0, 1), (60, 1)]}
    assert count_holes(records, {"a": 10, "b": 20, "c": 5}, until_ms=30) == 5


@pytest.mark.parametrize(
    ("answered_ms", "wrong"),
    [([], 0), ([60_000], 0), ([71_000], 1), ([60_000, 99_000], 0), ([60_000, 97_000, 99_000], 1)],
)
def test_a_heartbeat_fails_wrongly_if_a_ping_was_answered_in_its_period(
    answered_ms: list[int], wrong: int
) -> None:
    failed = [("token", 100_000)]
    assert count_wrong(failed, {"token": answered_ms}, period_ms=30_000) == wrong


@pytest.mark.parametrize(
    ("faults", "results", "silences"),
    [
        ([(0, 5)], [1, 5.5, 9], [0.5]),
        ([(0, 5)], [1], [95]),
        ([(0, 5)], [], [95]),
        ([(0, 5), (6, 10)], [12], [3, 2]),
        ([(0, 5), (4, 10)], [12], [2, 2]),
        ([(0, 10), (2, 3)], [3.5, 12], [2, 0]),
    ],
)
def test_silence_is_the_time_without_fault_and_result_after_a_fault(
    faults: list[tuple[float, float]], results: list[float], silences: list[float]
) -> None:
    assert sorted(silences_s(faults, results, until=100)) == sorted(silences)


def test_one_silence_in_a_hundred_may_be_longer() -> None:
    assert p99([1.0] * 99 + [50.0]) == 50.0
    assert p99([1.0] * 199 + [50.0]) == 1.0
    assert p99([]) == 0
