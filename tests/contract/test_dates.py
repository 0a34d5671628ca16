from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.templates import UnreadableDateError, format_date, is_date, read_date

NOW = datetime(2026, 3, 31, 15, 4, 5, 678_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("now", "2026-03-31 15:04:05"),
        (" Today ", "2026-03-31 15:04:05"),
        ("yesterday", "2026-03-30 15:04:05"),
        ("tomorrow", "2026-04-01 15:04:05"),
        ("2 days ago", "2026-03-29 15:04:05"),
        ("an hour ago", "2026-03-31 14:04:05"),
        ("1 month ago", "2026-02-28 15:04:05"),
        ("in a month", "2026-04-30 15:04:05"),
        ("3 weeks", "2026-04-21 15:04:05"),
        ("1 year from now", "2027-03-31 15:04:05"),
        ("in 90 seconds", "2026-03-31 15:05:35"),
        ("11 months ago", "2025-04-30 15:04:05"),
        ("last week", "2026-03-24 15:04:05"),
        ("next year", "2027-03-31 15:04:05"),
        ("2020-06-15", "2020-06-15 00:00:00"),
        ("2020-06-15T12:00:00+02:00", "2020-06-15 10:00:00"),
    ],
)
def test_a_date_is_read_from_words_and_numbers(text: str, shown: str) -> None:
    assert format_date(read_date(text, NOW), "YYYY-MM-DD HH:mm:ss") == shown
    assert is_date(text, NOW)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "YYYY",
        "2 fortnights ago",
        "in 999999999 years",
        "999999999 days ago",
        "2020-13-01",
    ],
)
def test_what_is_no_date_is_told(text: str) -> None:
    with pytest.raises(UnreadableDateError, match="is no date"):
        read_date(text, NOW)
    assert not is_date(text, NOW)


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        ("YYYY YY", "2026 26"),
        ("MMMM MMM MM M", "March Mar 03 3"),
        ("DD D dddd ddd dd d", "31 31 Tuesday Tue Tu 2"),
        ("HH H hh h A a", "15 15 03 3 PM pm"),
        ("mm m ss s SSS", "04 4 05 5 678"),
        ("Z ZZ", "+00:00 +0000"),
        ("X x", "1774969445 1774969445678"),
        ("[at] H [o'clock]", "at 15 o'clock"),
        ("YYYY-MM-DDTHH:mm:ss.SSS[Z]", "2026-03-31T15:04:05.678Z"),
    ],
)
def test_a_date_is_written_by_tokens(pattern: str, shown: str) -> None:
    assert format_date(NOW, pattern) == shown


@pytest.mark.parametrize(("hour", "shown"), [(0, "12 AM am"), (12, "12 PM pm")])
def test_noon_and_midnight_are_twelve(hour: int, shown: str) -> None:
    assert format_date(NOW.replace(hour=hour), "h A a") == shown


@given(st.integers(0, 10**9), st.sampled_from(["day", "hour", "month", "year"]))
def test_a_span_back_and_forth_never_leaves_the_calendar(count: int, unit: str) -> None:
    for text in (f"{count} {unit}s ago", f"in {count} {unit}s"):
        if is_date(text, NOW):
            assert 1 <= read_date(text, NOW).year <= 9999


@given(st.text())
def test_no_text_breaks_the_reader_or_the_writer(text: str) -> None:
    is_date(text, NOW)
    format_date(NOW, text)
