"""When a window is open: one-off and repeating, across changes of the clocks and ends of months."""

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.http.errors import InvalidError
from service.maintenance.model import FOREVER_MS, Occurrence, WindowRow, WindowWrite
from service.maintenance.rules import (
    MOST_OCCURRENCES,
    next_occurrence,
    occurrence_at,
    occurrences_between,
    plan,
)

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
BERLIN = {"timeZone": "Europe/Berlin"}
SUNDAYS = {
    "startsAt": "2026-11-29T02:00:00",
    "endsAt": "2026-11-29T04:00:00",
    "rrule": "FREQ=WEEKLY;BYDAY=SU",
}
HOSTILE = {
    "startsAt": "2026-11-29T00:00:00",
    "endsAt": "2026-12-30T00:00:00",
    "rrule": f"FREQ=DAILY;BYHOUR={','.join(map(str, range(24)))}",
}
"""As many occurrences as a rule can have, each as long as it can be."""


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def window(body: Mapping[str, Any]) -> WindowRow:
    read = WindowWrite.model_validate({"name": "Backups", **body})
    planned = plan(read)
    return WindowRow(
        id=7,
        name=read.name,
        tags=tuple(read.tags or ()),
        is_announced=read.show_on_status_pages,
        timing=planned.timing,
        repeat_interval=read.repeat_interval,
        repeat_unit=read.repeat_unit,
        repeat_ends_ms=planned.repeat_ends_ms,
        rrule=read.rrule,
        created_ms=0,
        updated_ms=None,
    )


def every(interval: int, unit: str, starts: str, ends: str, **more: Any) -> WindowRow:
    body = {"startsAt": starts, "endsAt": ends, "repeatInterval": interval, "repeatUnit": unit}
    return window({**body, **more})


def begins(row: WindowRow, count: int) -> list[int]:
    """The beginnings of the first occurrences, one after the other."""
    found: list[int] = []
    at_ms = row.timing.starts_ms - 1
    while len(found) < count and (following := next_occurrence(row, at_ms)):
        at_ms = following.begins_ms
        found.append(at_ms)
    return found


def refused(**body: Any) -> str:
    with pytest.raises(InvalidError) as problem:
        window({"startsAt": "2026-12-06T02:00:00", "endsAt": "2026-12-06T04:00:00", **body})
    return problem.value.message


def test_a_window_is_open_from_its_start_until_just_before_its_end() -> None:
    row = window({"startsAt": "2026-12-01T10:00:00Z", "endsAt": "2026-12-01T12:00:00.250Z"})
    start_ms, end_ms = ms("2026-12-01T10:00:00+00:00"), ms("2026-12-01T12:00:00.250+00:00")
    open_at = [
        occurrence_at(row, at_ms) is not None
        for at_ms in (start_ms - 1, start_ms, end_ms - 1, end_ms)
    ]
    assert open_at == [False, True, True, False]
    assert occurrence_at(row, start_ms) == Occurrence(
        window_id=7, name="Backups", begins_ms=start_ms, ends_ms=end_ms
    )
    assert next_occurrence(row, start_ms - 1) == occurrence_at(row, start_ms)
    assert next_occurrence(row, start_ms) is None


def test_a_repeating_window_is_open_each_time_and_closed_in_between() -> None:
    row = every(2, "DAY", "2026-12-01T23:00:00Z", "2026-12-02T01:00:00Z")
    start_ms = row.timing.starts_ms
    assert begins(row, 3) == [start_ms, start_ms + 2 * DAY_MS, start_ms + 4 * DAY_MS]
    for number in (0, 1, 500):
        begin_ms = start_ms + number * 2 * DAY_MS
        open_at = [
            occurrence_at(row, at_ms) is not None
            for at_ms in (
                begin_ms - 1,
                begin_ms,
                begin_ms + 2 * HOUR_MS - 1,
                begin_ms + 2 * HOUR_MS,
            )
        ]
        assert open_at == [number == 0 and False, True, True, False]


def test_the_interval_counts_weeks_from_the_first_occurrence() -> None:
    row = every(3, "WEEK", "2026-12-02T10:00:00Z", "2026-12-02T11:00:00Z")
    first = row.timing.starts_ms
    assert begins(row, 3) == [first, first + 21 * DAY_MS, first + 42 * DAY_MS]


@pytest.mark.parametrize(
    ("starts", "wanted"),
    [
        ("2027-01-31", ["01-31", "02-28", "03-31", "04-30", "05-31"]),
        ("2028-01-30", ["01-30", "02-29", "03-30", "04-30", "05-30"]),
        ("2027-01-29", ["01-29", "02-28", "03-29", "04-29", "05-29"]),
        ("2027-01-28", ["01-28", "02-28", "03-28", "04-28", "05-28"]),
    ],
)
def test_by_the_month_a_day_that_a_month_has_not_becomes_its_last(
    starts: str, wanted: list[str]
) -> None:
    row = every(1, "MONTH", f"{starts}T10:00:00Z", f"{starts}T11:00:00Z")
    days = [datetime.fromtimestamp(at / 1000).astimezone() for at in begins(row, 5)]
    assert [f"{day:%m-%d}" for day in days] == wanted


def test_by_a_rule_a_day_that_a_month_has_not_is_left_out() -> None:
    times = {"startsAt": "2027-01-31T10:00:00Z", "endsAt": "2027-01-31T11:00:00Z"}
    row = window({**times, "rrule": "FREQ=MONTHLY"})
    days = [datetime.fromtimestamp(at / 1000).astimezone() for at in begins(row, 3)]
    assert [f"{day:%m-%d}" for day in days] == ["01-31", "03-31", "05-31"]


def test_a_window_keeps_to_the_clock_on_the_wall_of_its_zone() -> None:
    row = every(1, "WEEK", "2027-03-21T09:00:00", "2027-03-21T10:00:00", **BERLIN)
    assert begins(row, 3) == [
        ms("2027-03-21T08:00:00+00:00"),
        ms("2027-03-28T07:00:00+00:00"),
        ms("2027-04-04T07:00:00+00:00"),
    ]
    in_utc = every(1, "WEEK", "2027-03-21T08:00:00", "2027-03-21T09:00:00")
    assert begins(in_utc, 2) == [
        ms("2027-03-21T08:00:00+00:00"),
        ms("2027-03-28T08:00:00+00:00"),
    ]


def test_what_a_clock_leaves_out_begins_as_much_later() -> None:
    """At 2 o'clock on 28 March 2027, clocks in Berlin are set to 3."""
    row = every(1, "DAY", "2027-03-27T02:30:00", "2027-03-27T03:30:00", **BERLIN)
    assert begins(row, 3) == [
        ms("2027-03-27T02:30:00+01:00"),
        ms("2027-03-28T03:30:00+02:00"),
        ms("2027-03-29T02:30:00+02:00"),
    ]


def test_of_what_a_clock_shows_twice_the_first_counts() -> None:
    """At 3 o'clock on 31 October 2027, clocks in Berlin are set to 2."""
    row = every(1, "DAY", "2027-10-30T02:30:00", "2027-10-30T03:30:00", **BERLIN)
    assert begins(row, 3) == [
        ms("2027-10-30T02:30:00+02:00"),
        ms("2027-10-31T02:30:00+02:00"),
        ms("2027-11-01T02:30:00+01:00"),
    ]


def test_a_window_that_starts_in_the_second_of_two_equal_hours_starts_there() -> None:
    row = every(1, "DAY", "2027-10-31T02:30:00+01:00", "2027-10-31T03:30:00+01:00", **BERLIN)
    assert begins(row, 2) == [ms("2027-10-31T02:30:00+01:00"), ms("2027-11-01T02:30:00+01:00")]


def test_an_occurrence_lasts_as_long_as_the_first_across_a_change_of_the_clocks() -> None:
    row = every(1, "WEEK", "2027-03-21T01:00:00", "2027-03-21T04:00:00", **BERLIN)
    begin_ms = ms("2027-03-28T01:00:00+01:00")
    occurrence = occurrence_at(row, begin_ms)
    assert occurrence is not None
    assert occurrence.ends_ms == begin_ms + 3 * HOUR_MS == ms("2027-03-28T05:00:00+02:00")


@pytest.mark.parametrize(
    ("more", "count"),
    [
        ({"repeatEndsAt": "2026-12-13T02:00:00Z"}, 3),
        ({"repeatEndsAt": "2026-12-13T01:59:59Z"}, 2),
        ({"repeatEndsAt": "2026-12-13"}, 3),
        ({"rrule": "FREQ=WEEKLY;COUNT=3"}, 3),
        ({"rrule": "FREQ=WEEKLY;UNTIL=20261213T020000Z"}, 3),
        ({"rrule": "FREQ=WEEKLY;UNTIL=20261213T015959Z"}, 2),
        ({"rrule": "FREQ=WEEKLY;UNTIL=20261213"}, 3),
        ({"rrule": "FREQ=WEEKLY;COUNT=9", "repeatEndsAt": "2026-12-13"}, 3),
        ({"rrule": "FREQ=WEEKLY;COUNT=1"}, 1),
    ],
)
def test_a_window_ends_with_the_first_of_its_ends(more: Mapping[str, str], count: int) -> None:
    row = window({**SUNDAYS, **more})
    found = begins(row, 9)
    assert len(found) == count
    open_until_ms = found[-1] + 2 * HOUR_MS
    assert occurrence_at(row, open_until_ms - 1) is not None
    assert row.timing.over_ms >= open_until_ms
    assert next_occurrence(row, found[-1]) is None


def test_a_window_without_an_end_is_never_over() -> None:
    row = window(SUNDAYS)
    assert row.timing.over_ms == FOREVER_MS
    assert occurrence_at(row, ms("2326-11-28T03:00:00+00:00")) is not None


@pytest.mark.parametrize("unit", ["DAY", "", None])
def test_a_unit_without_an_interval_repeats_nothing(unit: str | None) -> None:
    times = {"startsAt": "2026-12-01T10:00:00Z", "endsAt": "2026-12-01T11:00:00Z"}
    for nothing in ({"repeatInterval": None}, {"repeatInterval": 0}, {}):
        row = window(
            {**times, "repeatUnit": unit, "repeatEndsAt": "0001-01-01T00:00:00Z", **nothing}
        )
        assert row.timing.rule is None
        assert row.repeat_ends_ms is None
        assert len(begins(row, 2)) == 1


def test_of_occurrences_that_overlap_the_last_to_begin_is_told() -> None:
    row = every(1, "DAY", "2026-12-01T00:00:00Z", "2026-12-03T12:00:00Z")
    start_ms = row.timing.starts_ms
    occurrence = occurrence_at(row, start_ms + 2 * DAY_MS + HOUR_MS)
    assert occurrence is not None
    assert occurrence.begins_ms == start_ms + 2 * DAY_MS
    found = occurrences_between(row, start_ms + 2 * DAY_MS, start_ms + 2 * DAY_MS + 1)
    assert [one.begins_ms for one in found] == [start_ms + n * DAY_MS for n in range(3)]


def test_between_two_times_stands_what_has_a_part_there() -> None:
    row = every(1, "DAY", "2026-12-01T10:00:00Z", "2026-12-01T12:00:00Z")
    start_ms = row.timing.starts_ms

    def between(from_ms: int, to_ms: int) -> list[int]:
        found = occurrences_between(row, start_ms + from_ms, start_ms + to_ms)
        return [(one.begins_ms - start_ms) // DAY_MS for one in found]

    assert between(0, DAY_MS) == [0]
    assert between(0, DAY_MS + 1) == [0, 1]
    assert between(2 * HOUR_MS, DAY_MS) == []
    assert between(2 * HOUR_MS - 1, DAY_MS) == [0]
    assert between(-9 * DAY_MS, 0) == []


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"endsAt": "2026-12-06T02:00:00"}, '"endsAt" must be later than startsAt.'),
        ({"startsAt": "tomorrow"}, "use a time of the years 1971 to 2999"),
        ({"endsAt": "3000-01-01"}, "use a time of the years 1971 to 2999"),
        ({"timeZone": "Mars/Olympus"}, '"timeZone" is Mars/Olympus; use an IANA time zone'),
        ({"timeZone": "../../etc/passwd"}, "use an IANA time zone"),
        ({"timeZone": "America"}, "use an IANA time zone"),
        ({"repeatInterval": 1}, '"repeatUnit" is missing'),
        ({"repeatInterval": 1, "repeatUnit": "DAY", "rrule": "FREQ=DAILY"}, "omit one of them"),
        (
            {"repeatInterval": 1, "repeatUnit": "DAY", "endsAt": "2027-02-06"},
            "lasts 31 days at most",
        ),
        (
            {"repeatInterval": 1, "repeatUnit": "DAY", "repeatEndsAt": "2026-12-05"},
            '"repeatEndsAt" ends before startsAt.',
        ),
        ({"rrule": "FREQ=DAILY;UNTIL=20261205"}, '"rrule" ends before startsAt.'),
        ({"rrule": "FREQ=DAILY;UNTIL=00010101"}, '"rrule" ends before startsAt.'),
        ({"rrule": "FREQ=HOURLY"}, '"rrule" has FREQ=HOURLY, which is too often'),
        (
            {"rrule": "FREQ=WEEKLY;BYDAY=MO"},
            "not recur at startsAt, 2026-12-06T02:00:00; use 2026-12-07T02:00:00 for startsAt.",
        ),
        ({"rrule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"}, "it never recurs."),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(
    body: Mapping[str, Any], sentence: str
) -> None:
    assert sentence in refused(**body)


def test_an_until_far_ahead_is_taken() -> None:
    row = window({**SUNDAYS, **BERLIN, "rrule": "FREQ=WEEKLY;UNTIL=99991231T235959"})
    assert len(begins(row, 2)) == 2


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"rrule": "FREQ=YEARLY;INTERVAL=1000"},
        {"rrule": "FREQ=DAILY;INTERVAL=1000"},
        {"rrule": "FREQ=YEARLY;COUNT=1000"},
        {"rrule": "FREQ=WEEKLY;BYMONTH=11;BYDAY=SU"},
    ],
)
def test_no_rule_costs_more_than_a_bounded_part_of_a_second(more: Mapping[str, str]) -> None:
    began = time.process_time()
    row = window({**HOSTILE, **more})
    now_ms = ms("2096-02-29T00:00:00+00:00")
    occurrence_at(row, now_ms)
    next_occurrence(row, now_ms)
    assert len(occurrences_between(row, now_ms, now_ms + 10_000 * DAY_MS)) <= MOST_OCCURRENCES
    assert time.process_time() - began < 1.0


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC")),
    st.sampled_from(("DAY", "WEEK", "MONTH")),
    st.integers(1, 4),
    st.integers(1, 40),
    st.integers(0, 900 * 24),
)
def test_a_time_is_inside_just_if_it_is_between_the_ends_of_an_occurrence(
    zone: str, unit: str, interval: int, hours: int, later_h: int
) -> None:
    starts = ms("2026-10-31T02:15:00+00:00")
    body = {
        "startsAt": "2026-10-31T02:15:00Z",
        "endsAt": datetime.fromtimestamp((starts + hours * HOUR_MS) / 1000)
        .astimezone()
        .isoformat(),
        "repeatInterval": interval,
        "repeatUnit": unit,
        "timeZone": zone,
    }
    row, now_ms = window(body), starts + later_h * HOUR_MS
    around = occurrences_between(row, now_ms - 60 * DAY_MS, now_ms + 60 * DAY_MS)
    inside = [one for one in around if one.begins_ms <= now_ms < one.ends_ms]
    assert occurrence_at(row, now_ms) == max(inside, key=lambda one: one.begins_ms, default=None)
    after = [one for one in around if one.begins_ms > now_ms]
    following = next_occurrence(row, now_ms)
    assert after == [] or following == after[0]
