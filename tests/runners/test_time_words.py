"""Spans of time as sentences say them."""

import pytest

from runners.timing import duration, milliseconds, time_limit


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3661, "1 h 1 min"), (90_000, "1 d 1 h")],
)
def test_durations_are_told_in_their_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(12.0, "12"), (12.34, "12.3"), (410.96, "411"), (0.05, "0.1")]
)
def test_milliseconds_have_one_digit_where_they_are_not_whole(value: float, text: str) -> None:
    assert milliseconds(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(10.0, "10 s"), (2.5, "2.5 s"), (7.99993, "8 s"), (1800, "30 min")]
)
def test_limits_are_told_as_they_were_set(seconds: float, text: str) -> None:
    assert time_limit(seconds) == text
