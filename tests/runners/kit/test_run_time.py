"""A run's script is asked to end so early that what it leaves can be kept within the run's time."""

import pytest

from runners.kit.run_time import divided


@pytest.mark.parametrize(("within_s", "stop_after_s", "grace_s"), [(10, 7.5, 1.25), (240, 232, 4)])
def test_a_quarter_of_the_time_and_no_more_than_so_much_is_reserved(
    within_s: float, stop_after_s: float, grace_s: float
) -> None:
    time = divided(within_s, within_s=within_s, most_reserved_s=8)
    assert (time.stop_after_s, time.grace_s) == (stop_after_s, grace_s)


def test_what_is_used_is_the_scripts_and_the_limit_is_told_as_it_was_set() -> None:
    time = divided(240, within_s=239.5, most_reserved_s=8).later(31.5)
    assert (time.limit_s, time.stop_after_s, time.grace_s) == (240, 200, 4)
    assert time.later(1000).stop_after_s == 0
