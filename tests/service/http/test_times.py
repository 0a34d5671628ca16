"""Times as the API spells them."""

from hypothesis import given
from hypothesis import strategies as st

from service.http.times import format_time, moment


def test_a_time_is_spelled_to_the_millisecond() -> None:
    assert format_time(1_790_000_000_007) == "2026-09-21T14:13:20.007Z"
    assert format_time(None) is None


@given(st.integers(min_value=-60_000_000_000_000, max_value=200_000_000_000_000))
def test_a_spelled_time_is_the_moment(at_ms: int) -> None:
    told = format_time(at_ms)
    assert told is not None
    whole = moment(at_ms).isoformat(timespec="milliseconds")
    assert told == whole.replace("+00:00", "Z")
