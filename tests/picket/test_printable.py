"""Times read as people write them."""

import pytest

from picket.terminal import duration


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, "-"),
        (0, "<1 ms"),
        (0.42, "0.42 ms"),
        (0.999, "1.0 ms"),
        (3.21, "3.2 ms"),
        (99.97, "100 ms"),
        (420.4, "420 ms"),
        (999.6, "1.0 s"),
        (3_800, "3.8 s"),
        (59_940, "59.9 s"),
        (59_970, "1 min"),
        (125_000, "2 min 5 s"),
        (3_725_000, "1 h 2 min"),
    ],
)
def test_a_time_is_written_in_the_unit_that_people_choose(
    milliseconds: float | None, text: str
) -> None:
    assert duration(milliseconds) == text
