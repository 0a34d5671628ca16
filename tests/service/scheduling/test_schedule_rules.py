import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from service.scheduling.model import Rhythm
from service.scheduling.rules import next_after_run_ms, next_due_ms, places, rhythm, run_due_ms

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
