"""Laws of alerts, whatever happens in whatever order; and replays that say what happened."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from service.alerting.model import CLEAN, AlertPolicy, AlertType, Level, Seen, Step
from service.alerting.replay import Replay, replay
from service.alerting.rules import step
from service.results.model import FinalRun, RunStatus
from service.results.recording import record
from tests.builders.alerting import (
    a_check,
    by_minutes,
    by_runs,
    settings,
)
from tests.builders.world import World, a_world

MINUTE = 60_000
RECOVERIES = {AlertType.RECOVERY, AlertType.DEGRADED_RECOVERY}
CHANGES = {AlertType.DEGRADED_FAILURE, AlertType.FAILURE_DEGRADED}
POLICIES = st.builds(
    AlertPolicy,
    failed_runs=st.integers(1, 5),
    failing_ms=st.sampled_from([None, 5 * MINUTE, 30 * MINUTE]),
    reminders=st.sampled_from([0, 1, 3, 100_000]),
    reminder_ms=st.sampled_from([MINUTE, 5 * MINUTE, 30 * MINUTE]),
)


class AlertsOfACheck(RuleBasedStateMachine):
    """Runs, time, silence and pauses in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.state, self.now = CLEAN, 1_795_255_200_000
        self.policy = AlertPolicy()
        self.is_silent, self.is_activated = False, True
        self.steps: list[Step] = []
        self.levels: list[Level] = []

    @initialize(policy=POLICIES)
    def choose(self, policy: AlertPolicy) -> None:
        self.policy = policy

    @rule(level=st.sampled_from(Level))
    def run(self, level: Level) -> None:
        self.tick()
        self.step(Seen(level, self.now))

    @rule(minutes=st.integers(0, 90))
    def wait(self, minutes: int) -> None:
        self.now += minutes * MINUTE
        self.tick()

    @rule()
    def mute_or_not(self) -> None:
        self.is_silent = not self.is_silent

    @rule()
    def pause_or_not(self) -> None:
        self.is_activated = not self.is_activated

    def tick(self) -> None:
        self.step(None)

    def step(self, seen: Seen | None) -> None:
        policy = replace(self.policy, is_silent=self.is_silent, is_activated=self.is_activated)
        taken = step(self.state, seen, policy, now_ms=self.now)
        assert not (self.is_silent and taken.notifies) or taken.alert_type in RECOVERIES
        assert self.is_activated or taken.alert_type is AlertType.NO_ALERT
        self.state = taken.state
        if taken.alert_type is not AlertType.NO_ALERT:
            self.steps.append(taken)

    @invariant()
    def no_recovery_without_an_alert_before(self) -> None:
        is_open = has_notified = False
        for one in self.steps:
            if one.alert_type in RECOVERIES:
                assert is_open
                assert has_notified or not one.notifies
            is_open = one.alert_type not in RECOVERIES
            has_notified = is_open and (has_notified or one.notifies)

    @invariant()
    def nobody_is_notified_twice_of_one_level_but_by_numbered_reminders(self) -> None:
        notified = Level.PASSING
        for one in self.steps:
            if one.alert_type in RECOVERIES:
                notified = Level.PASSING
            elif one.notifies and one.reminder == 0:
                assert one.state.level is not notified or one.alert_type in CHANGES
                notified = one.state.level

    @invariant()
    def reminders_are_numbered_in_a_row(self) -> None:
        number = 0
        for one in self.steps:
            if one.reminder:
                number += 1
                assert one.reminder == number
                assert one.notifies
            elif one.notifies:
                number = 0

    @invariant()
    def a_timer_lies_ahead_and_only_where_the_check_does_not_pass(self) -> None:
        if self.state.timer_ms is not None:
            assert self.state.level is not Level.PASSING
        if self.state.level is Level.PASSING:
            assert self.state == CLEAN


TestAlertsOfACheck = AlertsOfACheck.TestCase


@given(st.text("PDF", max_size=30), POLICIES)
def test_a_first_alert_is_followed_by_no_other_before_a_recovery(
    letters: str, policy: AlertPolicy
) -> None:
    is_open = False
    for alert in replay(as_replay(letters, policy)):
        is_first = alert.reminder == 0 and alert.alert_type not in RECOVERIES | CHANGES
        assert not (is_first and is_open)
        is_open = alert.alert_type not in RECOVERIES


STATUSES = {"P": RunStatus.PASSED, "D": RunStatus.DEGRADED, "F": RunStatus.FAILED}


def as_replay(letters: str, policy: AlertPolicy) -> Replay:
    runs = [
        FinalRun(f"{number:04}", "cellar", STATUSES[letter], None, *[number * MINUTE] * 3)
        for number, letter in enumerate(letters)
    ]
    return Replay(runs=runs, policy=policy, locations=1, until_ms=len(letters) * MINUTE)


@pytest.mark.parametrize(
    "doc",
    [
        by_runs(1),
        by_runs(3),
        by_runs(1, reminders={"amount": 2, "interval": 3}),
        by_minutes(5, reminders={"amount": 100_000, "interval": 1}),
    ],
)
async def test_a_replay_of_stored_results_gives_the_alerts_that_were_made(
    world: World, doc: dict[str, Any]
) -> None:
    check = await a_check(world, doc)
    await check.runs("PFFDFFFPMPDDDDPPFFFFFFFFMFFFP", every_s=45)
    await check.wait(600)
    assert await check.types() == await check.replayed(doc["alertSettings"])


async def test_a_replay_counts_parallel_runs_together(world: World) -> None:
    places = (world.location_id, *[await world.location(slug) for slug in ("attic", "barn")])
    doc = settings(parallelRunFailureThreshold={"enabled": True, "percentage": 60})
    check = await a_check(world, doc, locations=places, run_parallel=True)
    for letters in ("PPP", "FPP", "FFP", "FFF", "DDP", "MPP", "DDM", "PPP", "FMF", "PPP"):
        await check.wait(60)
        due_ms = world.time.now
        for place, letter in zip(places, letters, strict=True):
            await check.wait(1)
            await check.run(letter, scheduled_ms=due_ms, location=place)
    made = await check.types()
    assert made[0] == "FAILURE"
    assert made[-1] == "RECOVERY"
    assert made == await check.replayed(doc["alertSettings"], locations=3)


async def test_a_late_result_of_runs_that_passed_together_says_nothing(world: World) -> None:
    """As of a location that the check was taken from while it ran there."""
    places = (world.location_id, await world.location("attic"))
    barn = await world.location("barn")
    check = await a_check(world, settings(), locations=places, run_parallel=True)
    due_ms = world.time.now
    for place in places:
        await check.run("P", scheduled_ms=due_ms, location=place)
    await check.wait(1)
    await check.run("F", scheduled_ms=due_ms, location=barn)
    assert await check.types() == [] == await check.replayed({}, locations=2)


async def test_runs_that_pass_together_keep_later_ones_open(world: World) -> None:
    places = (world.location_id, *[await world.location(slug) for slug in ("attic", "barn")])
    doc = settings(parallelRunFailureThreshold={"enabled": True, "percentage": 60})
    check = await a_check(world, doc, locations=places, run_parallel=True)
    first, second = world.time.now, world.time.now + 60_000
    for due_ms, letter, place in (
        (first, "D", 0),
        (first, "P", 1),
        (second, "D", 0),
        (second, "D", 1),
        (first, "P", 2),
        (second, "P", 2),
    ):
        await check.wait(1)
        await check.run(letter, scheduled_ms=due_ms, location=places[place])
    assert await check.types() == ["DEGRADED"]
    assert await check.types() == await check.replayed(doc["alertSettings"], locations=3)


PLACES = ("cellar", "attic", "barn", "shed")
RUNS = st.tuples(st.integers(0, 1), st.sampled_from(PLACES))
"""When a run was due, in minutes, and where it was."""


@dataclass(frozen=True)
class Story:
    """Results of runs of two due times, in the order in which they come."""

    runs: list[tuple[tuple[int, str], str]]
    sizes: list[int]
    """How many of them each transaction has."""
    locations: int
    """The check runs at so many places; runs elsewhere began before it was taken from there."""
    percentage: int
    failed_runs: int


STORIES = st.builds(
    Story,
    runs=st.lists(
        st.tuples(RUNS, st.sampled_from("PPPDFM")),
        min_size=3,
        max_size=8,
        unique_by=lambda one: one[0],
    ),
    sizes=st.lists(st.sampled_from([1, 1, 2, 3]), min_size=8, max_size=8),
    locations=st.integers(2, 3),
    percentage=st.sampled_from([0, 60]),
    failed_runs=st.integers(1, 2),
)


@hypothesis_settings(max_examples=50, deadline=None)
@given(STORIES)
def test_a_replay_gives_the_alerts_that_were_made_in_whatever_order_results_come(
    tmp_path_factory: pytest.TempPathFactory, story: Story
) -> None:
    asyncio.run(compare(tmp_path_factory.mktemp("replay"), story))


async def compare(folder: Path, story: Story) -> None:
    threshold = {"enabled": story.percentage > 0, "percentage": story.percentage}
    doc = by_runs(story.failed_runs, parallelRunFailureThreshold=threshold)
    async with a_world(folder) as world:
        ids = {"cellar": world.location_id}
        ids |= {slug: await world.location(slug) for slug in PLACES[1:]}
        places = tuple(ids[slug] for slug in PLACES[: story.locations])
        check = await a_check(world, doc, locations=places, run_parallel=True)
        due_ms, left = world.time.now, story.runs
        for size in story.sizes:
            await check.wait(1)
            records = [
                check.record(letter, scheduled_ms=due_ms + 60_000 * due, location=ids[slug])
                for (due, slug), letter in left[:size]
            ]
            left = left[size:]
            await world.change(lambda c, now, these=records: record(c, these, now_ms=now))
        expected = await check.replayed(doc["alertSettings"], locations=story.locations)
        assert await check.types() == expected
