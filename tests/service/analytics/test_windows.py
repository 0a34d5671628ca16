"""Quick ranges and buckets, in UTC."""

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.analytics.windows import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    MOST_BUCKETS,
    Granularity,
    Grid,
    QuickRange,
    find_window,
    period_edges,
    span_of,
    usual_interval,
)


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


NOW = ms("2026-03-31T15:30:10")  # a Tuesday, two days after clocks went forward in Europe


@pytest.mark.parametrize(
    ("quick_range", "begin", "end"),
    [
        ("last24Hours", "2026-03-30T15:30:10", "2026-03-31T15:30:10"),
        ("last7Days", "2026-03-24T15:30:10", "2026-03-31T15:30:10"),
        ("last30Days", "2026-03-01T15:30:10", "2026-03-31T15:30:10"),
        ("thisWeek", "2026-03-30T00:00:00", "2026-03-31T15:30:10"),
        ("lastWeek", "2026-03-23T00:00:00", "2026-03-30T00:00:00"),
        ("thisMonth", "2026-03-01T00:00:00", "2026-03-31T15:30:10"),
        ("lastMonth", "2026-02-01T00:00:00", "2026-03-01T00:00:00"),
    ],
)
def test_a_quick_range_is_this_window(quick_range: str, begin: str, end: str) -> None:
    assert span_of(QuickRange(quick_range), now_ms=NOW) == (ms(begin), ms(end))


@pytest.mark.parametrize("day", [23, 24, 25, 26, 27, 28, 29])
def test_a_week_begins_on_monday(day: int) -> None:
    now_ms = ms(f"2026-03-{day}T23:59:59")
    assert span_of(QuickRange.THIS_WEEK, now_ms=now_ms)[0] == ms("2026-03-23T00:00:00")


def test_limits_of_its_own_come_before_the_quick_range() -> None:
    week = {"quick_range": QuickRange.LAST_7_DAYS, "now_ms": NOW}
    assert find_window(from_ms=5, to_ms=9, **week) == (5, 9)
    assert find_window(from_ms=NOW - 7, to_ms=None, **week) == (NOW - 7, NOW)
    assert find_window(from_ms=None, to_ms=NOW - 7, **week) == (NOW - 7 - DAY_MS, NOW - 7)
    assert find_window(from_ms=NOW + 7, to_ms=None, **week) == (NOW + 7, NOW + 7)


def test_buckets_do_not_know_of_summer_time() -> None:
    span = ms("2026-03-29T00:00:00"), ms("2026-03-30T00:00:00")
    edges = Grid(span, HOUR_MS).edges(0, 100)
    assert {later - earlier for earlier, later in pairwise(edges)} == {HOUR_MS}
    assert (edges[0], edges[-1], len(edges)) == (*span, 25)


@given(
    st.integers(0, 4_000_000_000_000),
    st.integers(0, 100 * DAY_MS),
    st.integers(1, 43_200),
    st.integers(1, 100),
)
def test_pages_of_buckets_cover_the_window_once(
    begin_ms: int, length_ms: int, minutes: int, limit: int
) -> None:
    grid = Grid((begin_ms, begin_ms + length_ms), minutes * MINUTE_MS)
    edges = grid.edges(0, limit)
    following = grid.edges(limit, limit)
    assert all(edge % (minutes * MINUTE_MS) == 0 for edge in edges)
    if not length_ms:
        return
    assert edges[0] <= begin_ms < edges[1]
    if following:
        assert following[0] == edges[-1]
        assert len(edges) == limit + 1
    else:
        assert edges[-1] >= begin_ms + length_ms > edges[-2]
    assert grid.edges(grid.count, limit) == []


@pytest.mark.parametrize(
    ("length_ms", "minutes"),
    [(HOUR_MS, 1), (DAY_MS, 30), (7 * DAY_MS, 180), (30 * DAY_MS, 720), (9_000 * DAY_MS, 43_200)],
)
def test_the_usual_interval_fits_the_window(length_ms: int, minutes: int) -> None:
    span = (NOW - length_ms, NOW)
    assert usual_interval(span) == minutes
    assert Grid(span, minutes * MINUTE_MS).count <= MOST_BUCKETS or minutes == 43_200


def test_a_window_without_limits_is_that_of_its_name() -> None:
    found = find_window(from_ms=None, to_ms=None, quick_range=QuickRange.THIS_MONTH, now_ms=NOW)
    assert found == (ms("2026-03-01T00:00:00"), NOW)


def test_no_window_begins_before_1970() -> None:
    found = find_window(from_ms=None, to_ms=5, quick_range=QuickRange.THIS_MONTH, now_ms=NOW)
    assert found == (0, 5)


@pytest.mark.parametrize(
    ("quick_range", "begin", "end"),
    [
        (QuickRange.THIS_WEEK, "2026-03-01T23:00:00", "2026-03-01T23:30:00"),
        (QuickRange.LAST_WEEK, "2026-02-22T23:00:00", "2026-03-01T23:00:00"),
        (QuickRange.THIS_MONTH, "2026-02-28T23:00:00", "2026-03-01T23:30:00"),
        (QuickRange.LAST_MONTH, "2026-01-31T23:00:00", "2026-02-28T23:00:00"),
    ],
)
def test_days_of_a_quick_range_are_those_of_the_time_zone(
    quick_range: QuickRange, begin: str, end: str
) -> None:
    now_ms = ms("2026-03-01T23:30:00")  # in Berlin it is Monday already
    found = span_of(quick_range, now_ms=now_ms, zone=ZoneInfo("Europe/Berlin"))
    assert found == (ms(begin), ms(end))


def test_a_window_may_have_as_many_buckets_as_there_may_be() -> None:
    assert usual_interval((NOW // HOUR_MS * HOUR_MS, NOW // HOUR_MS * HOUR_MS + 100 * 60_000)) == 1


def test_a_report_ends_with_the_period_in_which_its_window_ends() -> None:
    zone = ZoneInfo("Europe/Berlin")
    midnight, next_midnight = ms("2026-03-01T23:00:00"), ms("2026-03-02T23:00:00")
    for begin in (midnight, midnight + 1):
        found = period_edges((begin, next_midnight), Granularity.DAY, zone)
        assert found == [midnight, next_midnight]


def test_days_of_a_report_begin_at_midnight_of_its_time_zone() -> None:
    span = ms("2026-03-28T12:00:00"), ms("2026-03-30T12:00:00")
    edges = period_edges(span, Granularity.DAY, ZoneInfo("Europe/Berlin"))
    assert edges == [
        ms("2026-03-27T23:00:00"),
        ms("2026-03-28T23:00:00"),
        ms("2026-03-29T22:00:00"),
        ms("2026-03-30T22:00:00"),
    ]
    months = period_edges((ms("2026-01-31T05:00:00"), NOW), Granularity.MONTH, UTC)
    assert months == [ms(f"2026-0{number}-01T00:00:00") for number in range(1, 5)]
    weeks = period_edges((NOW, NOW + 1), Granularity.WEEK, UTC)
    assert weeks == [ms("2026-03-30T00:00:00"), ms("2026-04-06T00:00:00")]
