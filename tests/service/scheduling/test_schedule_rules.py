import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.scheduling.model import DueTimes, Rhythm
from service.scheduling.rules import (
    MOST_SKIPPED,
    next_after_run_ms,
    next_due_ms,
    places,
    rhythm,
    run_due_ms,
    skipped_due_times,
)

MINUTE_MS = 60_000
SHORT = (1, 2, 5, 10, 15, 30, 60)
LONG = (120, 180, 360, 720, 1440)
IDS = st.text(min_size=1, max_size=40)
TIMES = st.integers(min_value=0, max_value=10**14)
RHYTHMS = st.integers(1, 10**9).flatmap(
    lambda period: st.builds(Rhythm, st.just(period), st.integers(0, period - 1))
)


@given(IDS, st.sampled_from((10, 20, 30)))
def test_frequency_0_runs_every_so_many_seconds_as_the_offset_says(
    check_id: str, offset: int
) -> None:
    when = rhythm(check_id, frequency_min=0, offset=offset)
    assert when.period_ms == offset * 1000
    assert 0 <= when.phase_ms < when.period_ms


@given(IDS, st.sampled_from(SHORT).flatmap(lambda f: st.tuples(st.just(f), st.integers(1, 10 * f))))
def test_up_to_an_hour_the_offset_chooses_a_slot_of_6_seconds(
    check_id: str, choice: tuple[int, int]
) -> None:
    frequency, offset = choice
    when = rhythm(check_id, frequency_min=frequency, offset=offset)
    assert when == Rhythm(frequency * MINUTE_MS, (offset - 1) * 6000)


@given(IDS, st.sampled_from(LONG).flatmap(lambda f: st.tuples(st.just(f), st.integers(1, f // 60))))
def test_above_an_hour_the_offset_chooses_an_hour(check_id: str, choice: tuple[int, int]) -> None:
    frequency, offset = choice
    when = rhythm(check_id, frequency_min=frequency, offset=offset)
    assert when == Rhythm(frequency * MINUTE_MS, (offset - 1) * 60 * MINUTE_MS)


@given(IDS, st.sampled_from((0, *SHORT, *LONG)))
def test_without_an_offset_the_phase_lies_in_the_period_and_is_always_the_same(
    check_id: str, frequency: int
) -> None:
    when = rhythm(check_id, frequency_min=frequency, offset=None)
    assert 0 <= when.phase_ms < when.period_ms
    assert when == rhythm(check_id, frequency_min=frequency, offset=None)


def test_checks_without_an_offset_spread_over_the_whole_period() -> None:
    for frequency in (0, 1, 10, 60, 1440):
        rhythms = [rhythm(f"check-{n}", frequency_min=frequency, offset=None) for n in range(2000)]
        tenths = [rhythm.phase_ms * 10 // rhythm.period_ms for rhythm in rhythms]
        assert all(140 < tenths.count(tenth) < 260 for tenth in range(10)), frequency


@pytest.mark.parametrize(
    ("frequency_min", "phase_ms"),
    [(0, 28_477), (1, 44_847), (10, 465_884), (90, 5_294_238), (1_440, 48_741_186)],
)
def test_no_release_shifts_the_runs_of_a_check(frequency_min: int, phase_ms: int) -> None:
    assert rhythm("check-1", frequency_min=frequency_min, offset=None).phase_ms == phase_ms


@pytest.mark.parametrize(
    ("frequency_min", "offset", "phase_ms"),
    [(60, 2, 6_000), (61, 2, 3_600_000), (1, 10, 54_000), (1, 11, 54_000), (1, 99, 54_000)],
)
def test_an_offset_beyond_the_last_slot_is_that_slot(
    frequency_min: int, offset: int, phase_ms: int
) -> None:
    assert rhythm("check-1", frequency_min=frequency_min, offset=offset).phase_ms == phase_ms


def test_another_process_computes_the_same_phase() -> None:
    script = (
        "from service.scheduling.rules import rhythm\n"
        "print(rhythm('check-1', frequency_min=10, offset=None).phase_ms)"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=Path(__file__).parents[3],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{rhythm('check-1', frequency_min=10, offset=None).phase_ms}\n"}


@given(RHYTHMS, TIMES)
def test_the_next_run_is_the_first_time_of_the_rhythm_after_now(when: Rhythm, now_ms: int) -> None:
    due_ms = next_due_ms(when, after_ms=now_ms)
    assert (due_ms - when.phase_ms) % when.period_ms == 0
    assert now_ms < due_ms <= now_ms + when.period_ms


@given(RHYTHMS, TIMES)
def test_the_second_run_is_of_the_rhythm_and_no_sooner_than_half_a_period_after_the_first(
    when: Rhythm, now_ms: int
) -> None:
    next_ms = next_after_run_ms(when, planned_ms=now_ms, now_ms=now_ms)
    assert (next_ms - when.phase_ms) % when.period_ms == 0
    if (now_ms - when.phase_ms) % when.period_ms:
        assert when.period_ms // 2 <= next_ms - now_ms <= when.period_ms * 3 // 2 + 1


@given(RHYTHMS, TIMES, st.integers(0, 100))
def test_after_a_run_of_the_rhythm_the_next_slot_is_next(
    when: Rhythm, turn: int, late_ms: int
) -> None:
    planned_ms = when.phase_ms + (turn % 10**6) * when.period_ms
    next_ms = next_after_run_ms(
        when, planned_ms=planned_ms, now_ms=planned_ms + late_ms % when.period_ms
    )
    assert next_ms == planned_ms + when.period_ms


@pytest.mark.parametrize(
    ("planned_ms", "next_ms"),
    [(65_000, 125_000), (64_999, 125_000), (40_000, 125_000), (35_000, 125_000), (34_999, 65_000)],
)
def test_after_a_first_run_half_a_period_passes(planned_ms: int, next_ms: int) -> None:
    when = Rhythm(period_ms=60_000, phase_ms=5_000)
    assert next_after_run_ms(when, planned_ms=planned_ms, now_ms=planned_ms) == next_ms


def skipped(planned_ms: int, newest_ms: int) -> list[DueTimes]:
    when = Rhythm(period_ms=60, phase_ms=5)
    return skipped_due_times(when, planned_ms=planned_ms, newest_ms=newest_ms)


@pytest.mark.parametrize("planned_ms", [65, 40])
def test_a_run_in_time_has_skipped_nothing(planned_ms: int) -> None:
    assert skipped(planned_ms, planned_ms) == []
    assert skipped(planned_ms, 124) == []


def test_due_times_that_passed_are_listed_one_by_one() -> None:
    assert skipped(65, 125) == [DueTimes(65, 65, 1)]
    assert skipped(40, 185) == [DueTimes(40, 40, 1), DueTimes(125, 125, 1)]


@pytest.mark.parametrize("planned_ms", [65, 40])
def test_the_oldest_of_many_due_times_share_one_item(planned_ms: int) -> None:
    newest_ms = 125 + MOST_SKIPPED * 60
    singles = [DueTimes(at, at, 1) for at in range(125, newest_ms, 60)]
    first = DueTimes(planned_ms, planned_ms, 1)
    assert skipped(planned_ms, newest_ms) == [first, *singles]
    assert skipped(planned_ms, newest_ms + 120) == [
        DueTimes(planned_ms, 185, 3),
        *singles[2:],
        DueTimes(newest_ms, newest_ms, 1),
        DueTimes(newest_ms + 60, newest_ms + 60, 1),
    ]


@given(RHYTHMS, TIMES, st.integers(0, 10**10))
def test_after_a_pause_one_run_is_caught_up_on_the_newest(
    when: Rhythm, planned_ms: int, away_ms: int
) -> None:
    now_ms = planned_ms + away_ms
    due_ms = run_due_ms(when, planned_ms=planned_ms, now_ms=now_ms)
    assert planned_ms <= due_ms <= now_ms
    assert next_due_ms(when, after_ms=now_ms) > now_ms >= due_ms
    assert due_ms == planned_ms or due_ms > now_ms - when.period_ms


def test_a_run_takes_its_turn_around_the_locations() -> None:
    turns = [places(["a", "b", "c"], run_parallel=False, turn=turn) for turn in range(4)]
    assert turns == [["a"], ["b"], ["c"], ["a"]]


def test_a_parallel_run_takes_place_everywhere() -> None:
    assert places(["a", "b"], run_parallel=True, turn=5) == ["a", "b"]


def test_a_check_without_locations_runs_nowhere() -> None:
    assert places([], run_parallel=False, turn=1) == []
