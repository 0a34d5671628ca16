"""RFC 5545 rules: python-dateutil's own iteration is what ours must equal."""

import datetime as dt
import time
from datetime import datetime, timedelta
from itertools import takewhile
from unittest.mock import patch

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given, settings
from hypothesis import strategies as st

from service.maintenance.recurrence import (
    MOST_COUNT,
    RecurrenceError,
    last_by_count,
    parse,
    recur,
    until_of,
)

# Times of a clock on the wall have no zone.
# ruff: noqa: DTZ001
START = datetime(2026, 11, 29, 2, 30)  # a Sunday


def listed(text: str, start: datetime = START, *, days: int = 800) -> list[datetime]:
    end = start.date() + timedelta(days=days)
    return list(recur(parse(text), start, start.date(), end))


def numbers(low: int, high: int) -> st.SearchStrategy[str]:
    any_number = st.integers(low, high).filter(bool)
    return st.lists(any_number, min_size=1, max_size=4).map(lambda them: ",".join(map(str, them)))


WEEKDAYS = st.sampled_from(("MO", "TU", "WE", "TH", "FR", "SA", "SU"))
PLAIN_DAYS = st.lists(WEEKDAYS, min_size=1, max_size=3).map(",".join)


def counted_days(most: int) -> st.SearchStrategy[str]:
    number = st.integers(-most, most).filter(bool)
    one = st.tuples(number, WEEKDAYS).map(lambda pair: f"{pair[0]}{pair[1]}")
    return st.lists(one, min_size=1, max_size=3).map(",".join)


MONTHS = {"BYMONTH": numbers(1, 12)}
MONTH_DAYS = {"BYMONTHDAY": numbers(-31, 31)}
POSITIONS = {"BYSETPOS": numbers(-3, 3)}
OFTEN = {"INTERVAL": st.integers(1, 5), "WKST": WEEKDAYS, "BYHOUR": numbers(1, 23)}
RULES = st.one_of(
    *(
        st.fixed_dictionaries({"FREQ": st.just(frequency)}, optional={**OFTEN, **parts}).map(
            lambda given: ";".join(f"{name}={value}" for name, value in given.items())
        )
        for frequency, parts in (
            ("DAILY", {**MONTHS, **MONTH_DAYS, "BYDAY": PLAIN_DAYS}),
            ("WEEKLY", {**MONTHS, "BYDAY": PLAIN_DAYS}),
            ("MONTHLY", {**MONTHS, **MONTH_DAYS, **POSITIONS, "BYDAY": counted_days(5)}),
            ("YEARLY", {**MONTHS, **MONTH_DAYS, "BYDAY": counted_days(5)}),
            ("YEARLY", {"BYDAY": counted_days(53), "BYSETPOS": numbers(-366, 366)}),
            ("YEARLY", {"BYYEARDAY": numbers(-366, 366)}),
            ("YEARLY", {"BYWEEKNO": numbers(-53, 53), "BYDAY": PLAIN_DAYS}),
        )
    )
)
STARTS = st.datetimes(datetime(2026, 1, 1), datetime(2032, 12, 31)).map(
    lambda at: at.replace(microsecond=0)
)


@settings(max_examples=60, deadline=None)
@given(RULES, STARTS, st.integers(0, 500), st.integers(0, 500))
def test_occurrences_are_those_of_dateutil_from_wherever_they_are_asked_for(
    text: str, start: datetime, later: int, days: int
) -> None:
    low = start.date() + timedelta(days=later)
    high = low + timedelta(days=days)
    # A rule that never recurs would be followed as far as the year 9999.
    with patch.object(dt, "MAXYEAR", high.year + 1):
        whole = rrulestr(text, dtstart=start)
        wanted = [at for at in takewhile(lambda at: at.date() <= high, whole) if low <= at.date()]
    assert list(recur(parse(text), start, low, high)) == wanted


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("FREQ=WEEKLY;BYDAY=SU", ["2026-11-29", "2026-12-06", "2026-12-13"]),
        ("rrule:freq=weekly;interval=2;", ["2026-11-29", "2026-12-13", "2026-12-27"]),
        ("FREQ=DAILY;INTERVAL=30", ["2026-11-29", "2026-12-29", "2027-01-28"]),
        ("FREQ=MONTHLY;BYDAY=-1SU", ["2026-11-29", "2026-12-27", "2027-01-31"]),
        ("FREQ=MONTHLY;BYMONTHDAY=31", ["2026-12-31", "2027-01-31", "2027-03-31"]),
        ("FREQ=YEARLY", ["2026-11-29", "2027-11-29", "2028-11-29"]),
    ],
)
def test_examples_that_people_write(text: str, first: list[str]) -> None:
    found = [at.date().isoformat() for at in listed(text)]
    assert found[:3] == first


HOSTILE = [
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=31",
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=DAILY;INTERVAL=7;BYDAY=MO",
    "FREQ=MONTHLY;INTERVAL=12;BYMONTH=3",
    "FREQ=MONTHLY;BYMONTHDAY=1;BYSETPOS=366",
    "FREQ=YEARLY;INTERVAL=1000;BYMONTH=11;BYMONTHDAY=1",
    "FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=2,4,6,9,11",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_rule_that_never_recurs_is_found_out_quickly(text: str) -> None:
    began = time.process_time()
    assert listed(text, days=3_660) == []
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("FREQ=SECONDLY", "FREQ=SECONDLY, which is too often"),
        ("FREQ=MINUTELY;BYDAY=SU", "FREQ=MINUTELY, which is too often"),
        ("FREQ=HOURLY", "FREQ=HOURLY, which is too often"),
        ("BYDAY=SU", "FREQ=(none)"),
        ("FREQ=OFTEN", "FREQ=OFTEN"),
        ("", "use NAME=VALUE"),
        ("every sunday", "use NAME=VALUE"),
        ("FREQ=DAILY;FREQ=DAILY", "each name once"),
        ("FREQ=DAILY\nRRULE:FREQ=DAILY", "FREQ="),
        ("DTSTART:20200101T000000\nRRULE:FREQ=DAILY", "FREQ=(none)"),
        ("FREQ=DAILY;BYEASTER=1", "BYEASTER, which has no meaning with FREQ=DAILY"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY, which has no meaning"),
        ("FREQ=DAILY;BYDAY=1SU", "BYDAY=1SU; use MO, TU, WE, TH, FR, SA, SU"),
        ("FREQ=DAILY;BYDAY=XX", "BYDAY=XX"),
        ("FREQ=DAILY;BYDAY=-", "BYDAY=-"),
        (
            "FREQ=MONTHLY;BYDAY=6MO",
            "BYDAY=6MO; use MO, TU, WE, TH, FR, SA, SU, with a number up to 5",
        ),
        ("FREQ=YEARLY;BYMONTH=12;BYDAY=6MO", "with a number up to 5"),
        ("FREQ=YEARLY;BYDAY=-54MO", "with a number up to 53"),
        ("FREQ=DAILY;BYHOUR=24", "BYHOUR=24; use 0 to 23"),
        ("FREQ=DAILY;BYHOUR=-1", "BYHOUR=-1; use 0 to 23"),
        ("FREQ=DAILY;BYMONTH=13", "BYMONTH=13; use 1 to 12"),
        ("FREQ=YEARLY;BYYEARDAY=999999999", "use 1 to 366, or -366 to -1"),
        ("FREQ=YEARLY;BYWEEKNO=54", "use 1 to 53"),
        ("FREQ=MONTHLY;BYSETPOS=0;BYDAY=MO", "BYSETPOS=0"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL=0; use 1 to 1000"),
        ("FREQ=DAILY;INTERVAL=-1", "INTERVAL=-1"),
        ("FREQ=DAILY;INTERVAL=99999999999999999999", "INTERVAL=99999999999999999999"),
        ("FREQ=DAILY;COUNT=1001", "COUNT=1001; use 1 to 1000"),
        ("FREQ=DAILY;COUNT=1;UNTIL=20270101", "COUNT and UNTIL"),
        ("FREQ=DAILY;WKST=XX", "WKST="),
        ("FREQ=DAILY;BYHOUR=1,2,3,4,5;BYMINUTE=1,2,3,4,5", "25 times a day"),
    ],
)
def test_a_rule_that_is_not_taken_is_refused_with_a_reason(text: str, told: str) -> None:
    with pytest.raises(RecurrenceError) as problem:
        parse(text)
    assert told in str(problem.value)


def test_the_last_one_by_a_count_is_the_one_of_that_number() -> None:
    assert last_by_count(parse("FREQ=WEEKLY;COUNT=1"), START) == START
    assert last_by_count(parse("FREQ=WEEKLY;COUNT=5"), START) == START + timedelta(weeks=4)
    assert last_by_count(parse("FREQ=WEEKLY"), START) is None


def test_a_count_is_followed_for_a_hundred_years() -> None:
    assert last_by_count(parse(f"FREQ=YEARLY;COUNT={MOST_COUNT}"), START) is None


@pytest.mark.parametrize(
    ("until", "wanted"),
    [
        ("20270131T120000Z", "2027-01-31T12:00:00+00:00"),
        ("20270131T120000", "2027-01-31T12:00:00"),
        ("20270131", "2027-01-31T23:59:59"),
    ],
)
def test_until_is_a_time_of_utc_or_of_the_zone_or_a_whole_day(until: str, wanted: str) -> None:
    found = until_of(parse(f"FREQ=DAILY;UNTIL={until}"))
    assert found is not None
    assert found.isoformat() == wanted


def test_until_must_be_a_time() -> None:
    with pytest.raises(RecurrenceError, match="UNTIL"):
        until_of(parse("FREQ=DAILY;UNTIL=SOON"))
    assert until_of(parse("FREQ=DAILY")) is None
