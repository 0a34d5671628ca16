"""From results to stored alerts, in the transaction of the result."""

import pytest
from sqlalchemy import select, update

from contract.assertions import AssertionResult, Comparison, Source
from contract.evidence import HttpEvidence, SeenResponse, SentRequest
from contract.job import RunSource
from contract.result import Artifact, Failure, FailureKind
from service.accounts import actions as accounts
from service.alerting.model import Mismatch
from service.db.sqlite_group import driver
from service.db.tables.alerting import maintenance_window
from service.db.tables.checks import check_, check_group
from service.db.tables.runs import session
from service.results.model import ResultType
from service.results.recording import record
from tests.builders.alerting import a_check, an_outcome_of, by_minutes, by_runs, settings
from tests.builders.engines import ON_SQLITE
from tests.builders.world import World


async def test_a_failure_makes_one_alert_and_a_pass_one_recovery(world: World) -> None:
    check = await a_check(world)
    await check.runs("PFFFP")
    assert await check.types() == ["FAILURE", "RECOVERY"]
    assert not await check.is_stored()


@ON_SQLITE
async def test_passes_of_a_check_that_passes_write_nothing_and_ask_once(world: World) -> None:
    check = await a_check(world)
    await check.run("P")
    seen: list[str] = []
    await world.database.write(lambda c: driver(c).set_trace_callback(seen.append))
    await check.run("P")
    [asked] = [one for one in seen if "alert" in one]
    assert asked.startswith("SELECT check_id FROM alert_state")
    assert not await check.is_stored()


async def test_attempts_missed_runs_errors_and_test_runs_make_no_alert(world: World) -> None:
    check = await a_check(world)
    await check.run("F", result_type=ResultType.ATTEMPT)
    await check.run("M")
    await check.run("F", source=RunSource.TEST_RECORD)
    await check.run("F", source=RunSource.TEST_NO_RECORD)
    assert await check.types() == []
    assert not await check.is_stored()
    await check.runs("FM")
    assert await check.types() == ["FAILURE"]


async def test_a_run_on_demand_counts(world: World) -> None:
    check = await a_check(world)
    await check.run("F", source=RunSource.TRIGGER_API, session_id="gone")
    assert await check.types() == ["FAILURE"]


async def test_time_based_escalation_and_reminders_come_without_results(world: World) -> None:
    reminders = {"amount": 2, "interval": 5}
    check = await a_check(world, by_minutes(10, reminders=reminders))
    await check.run("F")
    await check.wait(599)
    assert await check.types() == []
    await check.wait(1)
    assert await check.types() == ["FAILURE_REMAIN"]
    await check.wait(1800)
    assert await check.types() == ["FAILURE_REMAIN", "FAILURE_REMAIN 1", "FAILURE_REMAIN 2"]
    [first, *_] = await check.alerts()
    assert first.alert.result_id is not None
    assert first.alert.error == "The connection was refused."
    await check.run("P")
    assert (await check.types())[-1] == "RECOVERY"


async def test_a_reminder_that_was_due_while_the_service_was_away_comes_once(world: World) -> None:
    check = await a_check(world, by_runs(1, reminders={"amount": 5, "interval": 5}))
    await check.run("F")
    await check.wait(3600, ticks=False)
    assert await check.tick() == 1
    assert await check.tick() == 0
    assert await check.types() == ["FAILURE", "FAILURE_REMAIN 1"]


async def test_a_result_first_lets_what_was_due_before_happen(world: World) -> None:
    check = await a_check(world, by_runs(1, reminders={"amount": 5, "interval": 5}))
    await check.run("F")
    await check.runs("P", every_s=301, ticks=False)
    assert await check.types() == ["FAILURE", "FAILURE_REMAIN 1", "RECOVERY"]


async def test_a_muted_check_records_alerts_and_notifies_nobody(world: World) -> None:
    check = await a_check(world, muted=True)
    await check.runs("FF")
    assert await check.types() == ["(FAILURE)"]
    await world.database.write(lambda c: c.execute(update(check_).values(muted=False)))
    await check.runs("FP")
    assert await check.types() == ["(FAILURE)", "FAILURE_REMAIN", "RECOVERY"]


async def test_a_muted_check_notifies_of_no_recovery_either(world: World) -> None:
    check = await a_check(world)
    await check.run("F")
    await world.database.write(lambda c: c.execute(update(check_).values(muted=True)))
    await check.runs("FP")
    assert await check.types() == ["FAILURE", "(RECOVERY)"]


async def test_who_was_notified_of_a_failure_is_notified_of_its_end_in_maintenance(
    world: World,
) -> None:
    check = await a_check(world, {"tags": ["shop"]})
    await check.run("F")
    await begin_maintenance(world)
    await check.runs("PF", every_s=10)
    assert await check.types() == ["FAILURE", "RECOVERY", "(FAILURE)"]


async def begin_maintenance(world: World) -> None:
    """Of two minutes, for checks with the tag `shop`."""
    row = {
        "account_id": world.account_id,
        "name": "Move",
        "tags": ["shop"],
        "starts_ms": world.time.now,
        "ends_ms": world.time.now + 120_000,
        "time_zone": "UTC",
        "over_ms": world.time.now + 120_000,
        "created_ms": 1,
    }
    await world.database.write(lambda c: c.execute(maintenance_window.insert(), row))


async def test_a_check_in_maintenance_alerts_once_the_window_is_over(world: World) -> None:
    check, other = await a_check(world, {"tags": ["shop"]}), await a_check(world)
    await begin_maintenance(world)
    await check.run("F")
    await other.run("F")
    assert (await check.types(), await other.types()) == (["(FAILURE)"], ["FAILURE"])
    await check.runs("F", every_s=120)
    assert await check.types() == ["(FAILURE)", "FAILURE_REMAIN"]


async def test_a_deactivated_check_alerts_nobody_until_it_runs_again(world: World) -> None:
    check = await a_check(world, by_runs(1, reminders={"amount": 5, "interval": 5}))
    await check.run("F")
    await world.database.write(lambda c: c.execute(update(check_).values(activated=False)))
    await check.wait(600)
    await check.run("P")
    assert await check.types() == ["FAILURE"]
    await world.database.write(lambda c: c.execute(update(check_).values(activated=True)))
    await check.run("P")
    assert await check.types() == ["FAILURE", "RECOVERY"]


async def test_the_accounts_settings_count_unless_the_check_has_its_own(world: World) -> None:
    chosen = {"runBasedEscalation": {"failedRunThreshold": 2}}
    await world.database.write(
        lambda c: accounts.change_alert_settings(c, world.account_id, chosen)
    )
    check, own = await a_check(world), await a_check(world, by_runs(1))
    await check.run("F")
    await own.run("F")
    assert (await check.types(), await own.types()) == ([], ["FAILURE"])
    await check.run("F")
    assert await check.types() == ["FAILURE_REMAIN"]


async def test_the_settings_of_the_group_count_where_they_were_applied(world: World) -> None:
    check = await a_check(world, {"useGlobalAlertSettings": True}, applied=by_runs(2))
    await check.run("F")
    assert await check.types() == []


async def test_parallel_runs_of_one_time_make_one_alert(world: World) -> None:
    other = await world.location("attic")
    check = await a_check(world, locations=(world.location_id, other), run_parallel=True)
    due = world.time.now
    await check.run("F", scheduled_ms=due)
    await check.run("F", scheduled_ms=due, location=other)
    assert await check.types() == ["FAILURE"]
    await check.run("P", scheduled_ms=due + 60_000)
    assert await check.types() == ["FAILURE"]
    await check.run("P", scheduled_ms=due + 60_000, location=other)
    assert await check.types() == ["FAILURE", "RECOVERY"]
    assert not await check.is_stored()


async def test_parallel_runs_alert_only_if_the_share_of_locations_fails(world: World) -> None:
    places = (world.location_id, *[await world.location(slug) for slug in ("attic", "barn")])
    threshold = {"enabled": True, "percentage": 50}
    doc = settings(parallelRunFailureThreshold=threshold)
    check = await a_check(world, doc, locations=places, run_parallel=True)
    for number, letters in enumerate(("FPP", "FFP", "PFP")):
        due = world.time.now + number * 60_000
        for place, letter in zip(places, letters, strict=True):
            await check.run(letter, scheduled_ms=due, location=place)
        expected = [[], ["FAILURE"], ["FAILURE", "RECOVERY"]][number]
        assert await check.types() == expected
    [failure, _] = await check.alerts()
    assert failure.alert.location in {"attic", "cellar"}
    assert failure.alert.failing_locations == ("attic", "cellar")


async def test_a_location_at_which_nobody_ran_does_not_hold_up_the_others(world: World) -> None:
    other = await world.location("attic")
    check = await a_check(world, locations=(world.location_id, other), run_parallel=True)
    due = world.time.now
    await check.run("D", scheduled_ms=due)
    assert await check.types() == []
    assert await check.is_stored()
    await check.run("M", scheduled_ms=due, location=other)
    assert await check.types() == ["DEGRADED"]


async def test_runs_that_were_due_before_others_that_counted_say_nothing(world: World) -> None:
    other = await world.location("attic")
    check = await a_check(world, locations=(world.location_id, other), run_parallel=True)
    due = world.time.now
    await check.run("F", scheduled_ms=due + 60_000)
    await check.run("P", scheduled_ms=due)
    await check.run("P", scheduled_ms=due, location=other)
    assert await check.types() == ["FAILURE"]


async def test_the_last_attempt_of_older_runs_makes_no_alert_after_the_recovery(
    world: World,
) -> None:
    other = await world.location("attic")
    check = await a_check(
        world, settings(), locations=(world.location_id, other), run_parallel=True
    )
    due = world.time.now
    await check.run("F", scheduled_ms=due)
    await check.wait(60)
    await check.run("P", scheduled_ms=due + 60_000)
    await check.run("P", scheduled_ms=due + 60_000, location=other)
    await check.wait(10)
    await check.run("F", scheduled_ms=due, location=other, started_ms=world.time.now)
    assert await check.types() == ["FAILURE", "RECOVERY"]
    assert await check.replayed({}, locations=2) == ["FAILURE", "RECOVERY"]
    assert not await check.is_stored()


async def test_a_late_failure_counts_until_all_later_runs_of_one_time_have_ended(
    world: World,
) -> None:
    other = await world.location("attic")
    check = await a_check(
        world, settings(), locations=(world.location_id, other), run_parallel=True
    )
    due = world.time.now
    await check.run("P", scheduled_ms=due)
    await check.wait(60)
    await check.run("P", scheduled_ms=due + 60_000)
    await check.wait(10)
    await check.run("F", scheduled_ms=due, location=other, started_ms=world.time.now)
    assert await check.types() == ["FAILURE"] == await check.replayed({}, locations=2)


async def test_a_check_that_is_parallel_no_more_waits_for_no_other_location(world: World) -> None:
    other = await world.location("attic")
    check = await a_check(world, locations=(world.location_id, other), run_parallel=True)
    await check.run("D")
    assert await check.is_stored()
    await world.database.write(lambda c: c.execute(update(check_).values(run_parallel=False)))
    await check.runs("P")
    assert not await check.is_stored()


async def test_the_runs_of_a_session_count_together(world: World) -> None:
    other = await world.location("attic")
    check = await a_check(world, locations=(world.location_id, other))
    await check.run("F")
    due_ms = world.time.now + 1_000
    row = {
        "id": "session-1",
        "account_id": world.account_id,
        "check_id": check.check_id,
        "check_type": "URL",
        "name": "Front page",
        "locations": ["cellar", "attic"],
        "status": "STARTED",
        "pending": 2,
        "started_ms": due_ms,
    }
    await world.database.write(lambda c: c.execute(session.insert(), row))
    of_session = {"session_id": "session-1", "scheduled_ms": due_ms}
    await check.run("P", **of_session)
    assert await check.types() == ["FAILURE"]
    await check.run("P", location=other, **of_session)
    assert await check.types() == ["FAILURE", "RECOVERY"]
    assert await check.replayed({}) == ["FAILURE", "RECOVERY"]


async def test_an_alert_says_what_a_person_needs_at_night(world: World) -> None:
    place = await world.location("attic")
    check = await a_check(
        world,
        {"description": "The shop's front door", "tags": ["shop"]},
        locations=(world.location_id, place),
    )
    await check.run("P")
    passed_ms = world.time.now
    await check.wait(60)
    await check.run("P", location=place)
    passed_ms = world.time.now
    await check.wait(60)
    failed = AssertionResult(
        source=Source.STATUS_CODE,
        comparison=Comparison.EQUALS,
        target="200",
        order=0,
        actual="503",
        error="is 503",
    )
    outcome = an_outcome_of(
        "F",
        failure=Failure(kind=FailureKind.ASSERTION, message="The status code is 503, not 200."),
        assertions=(failed,),
        evidence=HttpEvidence(
            request=SentRequest(method="GET", url="https://shop.test/"),
            response=SeenResponse(status_code=503, status_text="Service Unavailable"),
        ),
        artifacts=(Artifact(name="trace.zip", kind="trace", size_bytes=1, sha256="0" * 64),),
    )
    await check.run("F", outcome=outcome)
    [stored] = await check.alerts()
    alert = stored.alert
    assert alert.mismatch == Mismatch(
        source="STATUS_CODE", property="", comparison="EQUALS", expected="200", actual="503"
    )
    assert alert.error == "The status code is 503, not 200."
    assert (alert.status_code, alert.status_text) == ("503", "Service Unavailable")
    assert (alert.check_name, alert.check_description) == ("Front page", "The shop's front door")
    assert (alert.location, alert.tags) == ("cellar", ("shop",))
    assert (alert.failing_locations, alert.passing_locations) == (("cellar",), ("attic",))
    assert (alert.last_pass_ms, alert.started_ms) == (passed_ms, world.time.now)
    assert alert.artifacts == ("trace.zip",)
    assert alert.response_time_ms == 12.5


async def test_an_assertion_is_told_only_where_it_is_why_the_check_failed(world: World) -> None:
    check = await a_check(world)
    body = AssertionResult(
        source=Source.JSON_BODY,
        property="$.status",
        comparison=Comparison.EQUALS,
        target="up",
        order=0,
        actual="down",
        error="is down",
    )
    status = Failure(kind=FailureKind.TIMEOUT, message="The response took too long.")
    await check.run("F", outcome=an_outcome_of("F", failure=status, assertions=(body,)))
    [stored] = await check.alerts()
    assert stored.alert.error == "The response took too long."
    assert stored.alert.mismatch is None


async def test_a_degraded_run_says_why_and_a_recovery_what_was(world: World) -> None:
    check = await a_check(world)
    await check.run("D", outcome=an_outcome_of("D", degraded_because="It took 6 s."))
    began_ms = world.time.now
    await check.runs("FP")
    degraded, _, recovery = [one.alert for one in await check.alerts()]
    assert degraded.error == "It took 6 s."
    assert (recovery.error, recovery.mismatch) == (None, None)
    assert recovery.started_ms == began_ms
    assert recovery.last_pass_ms == world.time.now


async def test_an_alert_names_the_group_of_its_check(world: World) -> None:
    row = {"account_id": world.account_id, "name": "Shops", "form": 1, "doc": {}, "created_ms": 1}
    await world.database.write(lambda c: c.execute(check_group.insert(), row))
    [group] = await world.rows(select(check_group.c.id))
    check = await a_check(world, group_id=group.id)
    await check.run("F")
    [stored] = await check.alerts()
    assert (stored.alert.group_id, stored.alert.group_name) == (group.id, "Shops")


async def test_a_result_that_cannot_be_read_alerts_without_its_details(world: World) -> None:
    check = await a_check(world)
    await check.run("F", body=b"{")
    [stored] = await check.alerts()
    assert (stored.alert.error, stored.alert.status_code) == (None, None)


async def test_a_check_that_is_gone_takes_its_state_along_and_leaves_its_alerts(
    world: World,
) -> None:
    check = await a_check(world)
    await check.run("F")
    await world.database.write(lambda c: c.execute(check_.delete()))
    assert not await check.is_stored()
    assert await check.types() == ["FAILURE"]


async def test_results_of_one_transaction_count_in_the_order_of_their_runs(world: World) -> None:
    check = await a_check(world)
    now_ms = world.time.now
    made = [
        check.record("P", started_ms=now_ms),
        check.record("F", started_ms=now_ms - 1000),
    ]
    await world.change(lambda c, now: record(c, made, now_ms=now))
    assert await check.types() == ["FAILURE", "RECOVERY"]


@pytest.mark.parametrize("letters", ["FDP", "DFP"])
async def test_a_change_of_level_is_reported_at_once(world: World, letters: str) -> None:
    check = await a_check(world, by_runs(5))
    await check.runs(letters)
    expected = {
        "FDP": ["FAILURE_DEGRADED", "DEGRADED_RECOVERY"],
        "DFP": ["DEGRADED_FAILURE", "RECOVERY"],
    }
    assert await check.types() == expected[letters]
