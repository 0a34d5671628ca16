"""Failed runs are tried again: when, where, how often, and with what left behind."""

import pytest
from sqlalchemy import select, update

from contract.result import Failure, FailureKind, Status
from service.db.tables.checks import check_
from service.db.tables.runs import run_final
from service.jobs.model import JobsDue
from service.jobs.settle import expire_jobs
from service.results.ingest import Verdict
from service.scheduling.actions import plan
from service.scheduling.tick import tick
from tests.builders.world import RETRY, World, a_result, an_outcome, kinds_of


async def test_a_failed_run_is_tried_again_after_its_backoff(world: World) -> None:
    check_id = await world.check(doc=RETRY)
    await world.queue(check_id)
    [first] = await world.claim("claim-1")
    await world.submit(a_result(first, Status.FAILED))
    assert await world.claim("claim-2") == []
    world.time.pass_s(10)
    [second] = await world.claim("claim-3")
    assert (second.run_id, second.attempt, second.fence) == (first.run_id, 2, first.fence + 1)
    await world.submit(a_result(second))
    assert await kinds_of(world, check_id) == [("ATTEMPT", "FAILED", 1), ("FINAL", "PASSED", 2)]
    assert len(await world.rows(select(run_final))) == 1


async def test_a_check_of_a_group_is_tried_again_as_its_group_says(world: World) -> None:
    check_id = await world.check(group_id=7, doc={"doubleCheck": True}, applied=RETRY)
    await world.queue(check_id)
    [first] = await world.claim("claim-1")
    await world.submit(a_result(first, Status.FAILED))
    assert await world.claim("claim-2") == []
    world.time.pass_s(10)
    [second] = await world.claim("claim-3")
    assert second.attempt == 2


@pytest.mark.parametrize(
    ("kind", "waits_s"),
    [
        ("FIXED", [5, 5, 5]),
        ("LINEAR", [5, 10, 15]),
        ("EXPONENTIAL", [5, 25, 125]),
        ("SINGLE_RETRY", [5]),
    ],
)
async def test_every_retry_but_the_last_leaves_an_attempt_before_the_final_result(
    world: World, kind: str, waits_s: list[int]
) -> None:
    strategy = {"type": kind, "baseBackoffSeconds": 5, "maxRetries": 3}
    check_id = await world.check(doc={"retryStrategy": strategy})
    await world.queue(check_id)
    for number, wait_s in enumerate([*waits_s, 0]):
        [job] = await world.claim(f"claim-{number}")
        assert job.attempt == number + 1
        await world.submit(a_result(job, Status.FAILED))
        world.time.pass_s(max(0, wait_s - 1))
        assert await world.claim(f"early-{number}") == []
        world.time.pass_s(1)
    assert await world.claim("claim-late") == []
    kinds = [(one, attempt) for one, _, attempt in await kinds_of(world, check_id)]
    attempts = [("ATTEMPT", number) for number in range(1, len(waits_s) + 1)]
    assert kinds == [*attempts, ("FINAL", len(waits_s) + 1)]


async def test_the_last_failed_attempt_is_final(world: World) -> None:
    check_id = await world.check(doc=RETRY)
    await world.queue(check_id)
    for turn in range(3):
        [job] = await world.claim(f"claim-{turn}")
        await world.submit(a_result(job, Status.FAILED))
        world.time.pass_s(10)
    assert await kinds_of(world, check_id) == [
        ("ATTEMPT", "FAILED", 1),
        ("ATTEMPT", "FAILED", 2),
        ("FINAL", "FAILED", 3),
    ]


async def test_waiting_agents_hear_of_a_retry(world: World) -> None:
    check_id = await world.check(doc=RETRY)
    await world.queue(check_id)
    [job] = await world.claim()
    heard: list[JobsDue] = []
    world.database.listen(JobsDue, heard.append)
    await world.submit(a_result(job, Status.FAILED))
    assert heard == [JobsDue(world.location_id, world.time.now + 10_000)]


async def test_a_degraded_run_is_not_tried_again(world: World) -> None:
    check_id = await world.check(doc=RETRY)
    await world.queue(check_id)
    [job] = await world.claim()
    await world.submit(a_result(job, Status.DEGRADED))
    assert await kinds_of(world, check_id) == [("FINAL", "DEGRADED", 1)]


async def test_a_failed_assertion_is_not_retried_when_only_network_errors_are(
    world: World,
) -> None:
    doc = {"retryStrategy": {**RETRY["retryStrategy"], "onlyOn": ["NETWORK_ERROR"]}}
    check_id = await world.check(doc=doc)
    await world.queue(check_id)
    [job] = await world.claim()
    wrong = Failure(kind=FailureKind.ASSERTION, message="not 200")
    outcome = an_outcome(Status.FAILED, failure=wrong)
    await world.submit(a_result(job, outcome=outcome))
    assert await kinds_of(world, check_id) == [("FINAL", "FAILED", 1)]


@pytest.mark.parametrize(("parallel", "place"), [("no", "attic"), ("yes", "cellar")])
async def test_a_retry_goes_elsewhere_unless_the_check_runs_everywhere_anyway(
    world: World, parallel: str, place: str
) -> None:
    attic = await world.location("attic")
    slug = {"attic": attic, "cellar": world.location_id}
    doc = {"retryStrategy": {**RETRY["retryStrategy"], "sameRegion": False}}
    check_id = await world.check(
        doc=doc, locations=(world.location_id, attic), run_parallel=parallel == "yes"
    )
    await world.queue(check_id)
    [job] = await world.claim()
    await world.submit(a_result(job, Status.FAILED))
    world.time.pass_s(10)
    [again] = await world.claim("claim-2", location=slug[place])
    assert (again.run_id, again.location) == (job.run_id, place)


async def test_a_retry_starts_a_new_count_of_lost_agents(world: World) -> None:
    check_id = await world.check(doc=RETRY)
    await world.queue(check_id)
    for turn in range(2):
        await world.claim(f"lost-{turn}")
        world.time.pass_s(60)
        await world.change(lambda c, now: expire_jobs(c, watched_since_ms=0, now_ms=now))
    [job] = await world.claim("claim-1")
    await world.submit(a_result(job, Status.FAILED))
    world.time.pass_s(10)
    await world.claim("lost-again")
    world.time.pass_s(60)
    await world.change(lambda c, now: expire_jobs(c, watched_since_ms=0, now_ms=now))
    assert len(await world.claim("claim-2")) == 1


async def test_a_retry_stays_where_it_is_when_the_check_has_left_the_place(world: World) -> None:
    attic = await world.location("attic")
    doc = {"retryStrategy": {**RETRY["retryStrategy"], "sameRegion": False}}
    check_id = await world.check(doc=doc, locations=(attic,))
    await world.queue(check_id, world.location_id)
    [job] = await world.claim()
    await world.submit(a_result(job, Status.FAILED))
    world.time.pass_s(10)
    [again] = await world.claim("claim-2")
    assert again.location == "cellar"


async def test_a_mad_backoff_keeps_no_result_out(world: World) -> None:
    strategy = {"type": "EXPONENTIAL", "baseBackoffSeconds": 1e200, "maxRetries": 10}
    check_id = await world.check(doc={"retryStrategy": {**strategy, "maxDurationSeconds": 600}})
    await world.queue(check_id)
    [job] = await world.claim()
    assert await world.submit(a_result(job, Status.FAILED)) == [Verdict.ACCEPTED]
    assert await kinds_of(world, check_id) == [("FINAL", "FAILED", 1)]


async def test_a_deactivated_check_is_not_tried_again(world: World) -> None:
    check_id = await world.check(doc=RETRY)
    await world.queue(check_id)
    [job] = await world.claim()
    await world.database.write(
        lambda c: c.execute(update(check_).where(check_.c.id == check_id).values(activated=False))
    )
    await world.submit(a_result(job, Status.FAILED))
    assert await kinds_of(world, check_id) == [("FINAL", "FAILED", 1)]


async def test_a_retry_stays_when_its_run_is_under_way_elsewhere_too(world: World) -> None:
    attic = await world.location("attic")
    check_id = await world.check(
        doc={"retryStrategy": {**RETRY["retryStrategy"], "sameRegion": False}},
        locations=(world.location_id, attic),
        run_parallel=True,
    )
    await world.change(lambda c, now: plan(c, check_id, now_ms=now))
    await world.change(lambda c, now: tick(c, now_ms=now))
    [job] = await world.claim()
    await world.database.write(
        lambda c: c.execute(
            update(check_).where(check_.c.id == check_id).values(run_parallel=False)
        )
    )
    assert await world.submit(a_result(job, Status.FAILED)) == [Verdict.ACCEPTED]
    world.time.pass_s(10)
    [again] = await world.claim("claim-2")
    assert (again.run_id, again.attempt) == (job.run_id, 2)
