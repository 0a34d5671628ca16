"""The rules of frequency and offset, held against a week that is walked through second by second.

The walk knows the specification's sentences and a clock's hands, and shares nothing with the code.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select

from service.checks.rules import offset_problem
from service.db.tables.checks import schedule
from service.db.tables.runs import job
from service.scheduling.actions import plan
from service.scheduling.model import Rhythm
from service.scheduling.rules import next_after_run_ms, rhythm, run_due_ms
from service.scheduling.tick import tick
from tests.builders.world import World

WEEK_S: Final = 7 * 24 * 3600
MONDAY_S: Final = 1_767_571_200
"""2026-01-05 00:00 UTC."""
SHORT: Final = (1, 2, 5, 10, 15, 30, 60)
LONG: Final = (120, 180, 360, 720, 1440)
IDS: Final = st.uuids().map(str)


def allowed(frequency: int, offset: int) -> bool:
    """The specification's first three rules, in its own words."""
    if frequency == 0:
        return offset in (10, 20, 30)
    if frequency <= 60:
        return offset in range(1, frequency * 10 + 1)
    hours, rest = divmod(frequency, 60)
    return offset in range(1, (hours + 1 if rest else hours) + 1)


def clock_hands(frequency: int, offset: int) -> Iterator[int]:
    """The seconds of the week at which a check runs: its slot begins, counted on a clock's hands.

    Up to an hour a period has ten slots a minute, above it has one an hour.
    """
    slot_s, slots = (6, frequency * 10) if frequency <= 60 else (3600, frequency // 60)
    hand, within = (MONDAY_S // slot_s) % slots, MONDAY_S % slot_s
    for second in range(MONDAY_S, MONDAY_S + WEEK_S):
        if within == 0 and hand == offset - 1:
            yield second
        within += 1
        if within == slot_s:
            within, hand = 0, (hand + 1) % slots


@dataclass(frozen=True, slots=True)
class Outage:
    """The service is away, in seconds of the week."""

    begins: int
    ends: int


OUTAGES: Final = st.tuples(st.integers(0, WEEK_S - 1), st.integers(0, 3 * 24 * 3600)).map(
    lambda one: Outage(MONDAY_S + one[0], MONDAY_S + one[0] + one[1])
)


def ticks(outage: Outage, *, from_ms: int) -> Iterator[int]:
    """Each second of the week from a moment on in which the service is there."""
    for now_ms in range(from_ms, (MONDAY_S + WEEK_S) * 1000, 1000):
        if not outage.begins * 1000 <= now_ms < outage.ends * 1000:
            yield now_ms


def walked(when: Rhythm, outage: Outage, *, created_ms: int) -> list[int]:
    """The runs that the scheduler starts; it plans and ticks as `actions` and `tick` do."""
    runs, planned_ms = [], created_ms
    for now_ms in ticks(outage, from_ms=created_ms):
        if planned_ms <= now_ms:
            runs.append(run_due_ms(when, planned_ms=planned_ms, now_ms=now_ms))
            planned_ms = next_after_run_ms(when, planned_ms=planned_ms, now_ms=now_ms)
    return runs


@pytest.mark.parametrize("frequency", [0, *SHORT, *LONG])
def test_an_offset_is_taken_on_one_side_of_its_limits_and_refused_on_the_other(
    frequency: int,
) -> None:
    for offset in range(-2, 700):
        assert (offset_problem(frequency, offset) is None) == allowed(frequency, offset), offset
    assert (offset_problem(frequency, None) is None) == (frequency != 0)


@st.composite
def frequencies_and_offsets(draw: st.DrawFn) -> tuple[int, int]:
    frequency = draw(st.sampled_from((*SHORT, *LONG)))
    most = frequency * 10 if frequency <= 60 else frequency // 60
    return frequency, draw(st.one_of(st.just(1), st.just(most), st.integers(1, most)))


@settings(max_examples=8, deadline=None)
@given(IDS, frequencies_and_offsets())
@example("0c6f9d0e-0000-4000-8000-000000000000", (60, 600))
@example("0c6f9d0e-0000-4000-8000-000000000000", (120, 2))
def test_in_a_week_a_check_runs_in_its_slot_of_each_period_and_never_else(
    check_id: str, chosen: tuple[int, int]
) -> None:
    frequency, offset = chosen
    when = rhythm(check_id, frequency_min=frequency, offset=offset)
    expected = [second * 1000 for second in clock_hands(frequency, offset)]
    assert len(expected) == WEEK_S // (frequency * 60)
    never = Outage(MONDAY_S - 1, MONDAY_S - 1)
    first = expected[0]
    assert walked(when, never, created_ms=first) == expected


@settings(max_examples=8, deadline=None)
@given(IDS, frequencies_and_offsets(), st.integers(0, WEEK_S * 500), OUTAGES)
@example(
    "0c6f9d0e-0000-4000-8000-000000000000",
    (60, 7),
    500,
    Outage(MONDAY_S + 5 * 3600, MONDAY_S + 9 * 3600),
)
def test_whenever_it_is_made_and_the_service_is_away_each_slot_runs_once_or_is_caught_up_on_by_one(
    check_id: str, chosen: tuple[int, int], age_ms: int, outage: Outage
) -> None:
    frequency, offset = chosen
    when = rhythm(check_id, frequency_min=frequency, offset=offset)
    created_ms = MONDAY_S * 1000 + age_ms
    half_ms = frequency * 30_000
    slots = [second * 1000 for second in clock_hands(frequency, offset)]
    runs = walked(when, outage, created_ms=created_ms)
    if not runs:
        assert outage.begins * 1000 <= created_ms
        return
    rest = [slot for slot in slots if slot > runs[0] + (half_ms if runs[0] == created_ms else 0)]
    slept = [slot for slot in rest if outage.begins * 1000 - 1000 < slot < outage.ends * 1000]
    awake = [slot for slot in rest if slot not in slept]
    assert runs == sorted(set(runs))
    # The last slot of the week may be due after the last tick of it.
    assert set(awake) - set(runs[1:]) <= {slot for slot in awake if slot > slots[-1] - 1000}
    extra = [run for run in runs[1:] if run not in awake]
    assert set(extra) <= set(slept)
    assert len(extra) <= 2, "one that was due in the second before, and one that is caught up on"
    missed = [slot for slot in slept if slot >= outage.begins * 1000]
    if outage.ends < MONDAY_S + WEEK_S - 2:
        newest = [] if outage.ends * 1000 in slots else missed[-1:]
        assert [run for run in extra if run >= outage.begins * 1000] == newest


@settings(max_examples=10, deadline=None)
@given(IDS, st.sampled_from((10, 20, 30)))
def test_with_frequency_0_a_week_has_a_run_every_so_many_seconds(
    check_id: str, offset: int
) -> None:
    when = rhythm(check_id, frequency_min=0, offset=offset)
    never = Outage(MONDAY_S - 1, MONDAY_S - 1)
    runs = walked(when, never, created_ms=MONDAY_S * 1000)[1:]
    assert {later - sooner for sooner, later in pairwise(runs)} == {offset * 1000}
    assert WEEK_S // offset - 2 <= len(runs) <= WEEK_S // offset


@settings(max_examples=10, deadline=None)
@given(IDS, st.sampled_from((*SHORT, *LONG)))
def test_without_an_offset_every_period_of_the_week_has_one_run(
    check_id: str, frequency: int
) -> None:
    when = rhythm(check_id, frequency_min=frequency, offset=None)
    never = Outage(MONDAY_S - 1, MONDAY_S - 1)
    period_ms = frequency * 60_000
    runs = walked(when, never, created_ms=MONDAY_S * 1000 - period_ms)[2:]
    periods = [run // period_ms for run in runs]
    assert periods == [*range(periods[0], periods[0] + len(periods))]
    assert len(runs) >= WEEK_S * 1000 // period_ms - 1


@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(frequency=st.sampled_from(LONG), parallel=st.booleans(), away=st.integers(0, WEEK_S // 1800))
async def test_the_database_holds_the_runs_of_that_week_place_by_place(
    world: World, frequency: int, *, parallel: bool, away: int
) -> None:
    """The scheduler itself, looked at each half hour, and away for a day."""
    attic = await world.location(f"attic-{frequency}-{parallel}-{away}-{world.time.now}")
    world.time.now = MONDAY_S * 1000
    places = [world.location_id, attic]
    check_id = await world.check(
        locations=tuple(places), run_parallel=parallel, frequency=frequency, frequency_offset=1
    )
    await world.change(lambda c, now: plan(c, check_id, now_ms=now))
    for half_hour in range(2 * 24 * 7):
        world.time.now = (MONDAY_S + half_hour * 1800) * 1000
        if not away <= half_hour < away + 48:
            await world.change(lambda c, now: tick(c, now_ms=now))
    query = select(job.c.scheduled_ms, job.c.location_id).order_by(job.c.id)
    found = [tuple(row) for row in await world.rows(query.where(job.c.check_id == check_id))]
    for table in (job, schedule):
        gone = delete(table)
        await world.database.write(lambda c, gone=gone: c.execute(gone))
    gap = range(MONDAY_S + away * 1800, MONDAY_S + (away + 48) * 1800)
    slots = list(clock_hands(frequency, 1))
    missed = [slot for slot in slots if slot in gap]
    back_in_week = gap.stop < MONDAY_S + WEEK_S
    caught_up = missed[-1:] if back_in_week and gap.stop not in slots else []
    due = [slot * 1000 for slot in slots if slot not in gap or slot in caught_up]
    expected = [
        (at_ms, place)
        for at_ms in due
        for place in (places if parallel else [places[slots.index(at_ms // 1000) % 2]])
    ]
    assert found == expected
