"""A run's script is asked to end so early that what it leaves can be kept within the run's time."""

import pytest

from sandbox.program import descendants_wait_s, split_time


@pytest.mark.parametrize(
    ("within_s", "stop_after_s", "grace_s"),
    [(5, 3, 1), (10, 6, 2), (16, 12, 2), (20, 15, 2.5), (240, 232, 4)],
)
def test_a_quarter_of_the_time_is_reserved_but_neither_too_little_nor_too_much(
    within_s: float, stop_after_s: float, grace_s: float
) -> None:
    time = split_time(within_s, within_s=within_s, most_reserved_s=8)
    assert (time.stop_after_s, time.grace_s) == (stop_after_s, grace_s)


@pytest.mark.parametrize("within_s", [2, 8, 12, 30, 240, 1800])
def test_ending_a_script_by_force_leaves_time_to_read_what_it_left(within_s: float) -> None:
    time = split_time(within_s, within_s=within_s, most_reserved_s=8)
    reserved_s = within_s - time.stop_after_s
    assert time.grace_s + descendants_wait_s(time.grace_s) < reserved_s * 0.7


def test_what_is_used_is_the_scripts_and_the_limit_is_told_as_it_was_set() -> None:
    time = split_time(240, within_s=239.5, most_reserved_s=8).minus(31.5)
    assert (time.limit_s, time.stop_after_s, time.grace_s) == (240, 200, 4)
    assert time.minus(1000).stop_after_s == 0
