"""What the runs of a check come to."""

import pytest

from service.overview.rules import empty_slots, find_slot_ms, summarize
from service.results.model import Ending, RunStatus

HOUR = 3_600_000
DAY = 24 * HOUR
WINDOW = (10 * DAY, 11 * DAY)
PASSED, DEGRADED, FAILED = RunStatus.PASSED, RunStatus.DEGRADED, RunStatus.FAILED


def ends(after_ms: int, status: RunStatus, took_ms: float | None = None) -> Ending:
    return Ending(WINDOW[0] + after_ms, status, "cellar", took_ms)


def test_each_run_stands_where_its_time_is_however_few_there_are() -> None:
    runs = [ends(0, PASSED), ends(HOUR, FAILED), ends(DAY - 1, PASSED)]

    day = summarize(runs, window=WINDOW).marks
    week = summarize(runs, window=(4 * DAY, 11 * DAY)).marks

    assert {place: one for place, one in enumerate(day) if one} == {
        0: PASSED,
        4: FAILED,
        95: PASSED,
    }
    assert {place: one for place, one in enumerate(week) if one} == {72: FAILED, 83: PASSED}


@pytest.mark.parametrize(
    ("hours", "slots", "minutes"),
    [(1, 60, 1), (6, 72, 5), (24, 96, 15), (168, 84, 120), (720, 90, 480)],
)
def test_a_strip_has_equal_slots_of_round_length(hours: int, slots: int, minutes: int) -> None:
    window = (WINDOW[1] - hours * HOUR, WINDOW[1])

    assert (len(empty_slots(window)), find_slot_ms(window)) == (slots, minutes * 60_000)


def test_a_slot_shows_its_worst_run() -> None:
    minute = 60_000
    runs = [ends(place * minute, PASSED) for place in range(1440)]
    runs[7] = ends(7 * minute, DEGRADED)
    runs[8] = ends(8 * minute, FAILED)
    runs[16] = ends(16 * minute, DEGRADED)

    recent = summarize(runs, window=WINDOW)

    assert list(recent.marks) == [FAILED, DEGRADED, *[PASSED] * 94]


def test_runs_that_begin_late_leave_no_gap_of_one_slot() -> None:
    minute = 60_000
    runs = [ends(0, PASSED), ends(2 * minute, FAILED), ends(5 * minute, PASSED)]

    hour = summarize(runs, window=(WINDOW[0], WINDOW[0] + HOUR)).marks

    assert hour[:7] == [PASSED, PASSED, FAILED, None, None, PASSED, None]


def test_only_what_was_looked_at_counts_for_availability() -> None:
    missed = Ending(WINDOW[0], RunStatus.MISSED, "cellar", due_times=7, until_ms=WINDOW[0] + HOUR)
    runs = [missed, ends(HOUR, PASSED), ends(2 * HOUR, DEGRADED), ends(3 * HOUR, FAILED)]

    recent = summarize(runs, window=WINDOW)

    assert (recent.runs, recent.failed, recent.missed) == (3, 1, 7)
    assert recent.availability == 2 / 3


def test_a_result_for_many_due_times_marks_all_of_their_time() -> None:
    missed = Ending(WINDOW[0], RunStatus.MISSED, "cellar", due_times=90, until_ms=WINDOW[0] + HOUR)
    runs = [missed, *(ends(2 * HOUR + place * 60_000, PASSED) for place in range(100))]

    recent = summarize(runs, window=WINDOW)

    assert list(recent.marks[:6]) == [RunStatus.MISSED] * 5 + [None]


def test_without_runs_nothing_is_known() -> None:
    recent = summarize([], window=WINDOW)

    assert (recent.availability, recent.p95_ms) == (None, None)
    assert set(recent.marks) == {None}


def test_a_line_has_the_mean_of_each_part() -> None:
    runs = [ends(0, PASSED, 10), ends(1, PASSED, 30), ends(DAY - 1, FAILED, 50)]

    line = summarize(runs, window=WINDOW).line

    assert (line[0], set(line[1:-1]), line[-1]) == (20, {None}, 50)
