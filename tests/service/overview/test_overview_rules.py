"""What the runs of a check come to."""

from service.overview.rules import MOST_MARKS, summarize
from service.results.model import Ending, RunStatus

HOUR = 3_600_000
DAY = 24 * HOUR
WINDOW = (10 * DAY, 11 * DAY)
PASSED, DEGRADED, FAILED = RunStatus.PASSED, RunStatus.DEGRADED, RunStatus.FAILED


def ends(after_ms: int, status: RunStatus, took_ms: float | None = None) -> Ending:
    return Ending(WINDOW[0] + after_ms, status, "cellar", took_ms)


def test_few_runs_have_a_mark_each_and_stand_at_the_end() -> None:
    runs = [ends(0, PASSED), ends(HOUR, FAILED)]

    recent = summarize(runs, window=WINDOW, expected=48)

    assert list(recent.marks) == [None] * 46 + [PASSED, FAILED]


def test_many_runs_are_put_into_buckets_of_which_each_shows_its_worst() -> None:
    minute = 60_000
    runs = [ends(place * minute, PASSED) for place in range(1440)]
    runs[7] = ends(7 * minute, DEGRADED)
    runs[8] = ends(8 * minute, FAILED)
    runs[16] = ends(16 * minute, DEGRADED)

    recent = summarize(runs, window=WINDOW, expected=1440)

    assert list(recent.marks) == [FAILED, DEGRADED, *[PASSED] * (MOST_MARKS - 2)]


def test_only_what_was_looked_at_counts_for_availability() -> None:
    missed = Ending(WINDOW[0], RunStatus.MISSED, "cellar", due_times=7, until_ms=WINDOW[0] + HOUR)
    runs = [missed, ends(HOUR, PASSED), ends(2 * HOUR, DEGRADED), ends(3 * HOUR, FAILED)]

    recent = summarize(runs, window=WINDOW, expected=24)

    assert (recent.runs, recent.failed, recent.missed) == (3, 1, 7)
    assert recent.availability == 2 / 3


def test_a_result_for_many_due_times_marks_all_of_their_time() -> None:
    missed = Ending(WINDOW[0], RunStatus.MISSED, "cellar", due_times=90, until_ms=WINDOW[0] + HOUR)
    runs = [missed, *(ends(2 * HOUR + place * 60_000, PASSED) for place in range(100))]

    recent = summarize(runs, window=WINDOW, expected=1440)

    assert list(recent.marks[:6]) == [RunStatus.MISSED] * 5 + [None]


def test_without_runs_nothing_is_known() -> None:
    recent = summarize([], window=WINDOW, expected=0)

    assert (recent.availability, recent.p95_ms) == (None, None)
    assert set(recent.marks) == {None}


def test_a_line_has_the_mean_of_each_part() -> None:
    runs = [ends(0, PASSED, 10), ends(1, PASSED, 30), ends(DAY - 1, FAILED, 50)]

    line = summarize(runs, window=WINDOW, expected=24).line

    assert (line[0], set(line[1:-1]), line[-1]) == (20, {None}, 50)
