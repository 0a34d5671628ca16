"""What a result that comes in counts for: its run, its check's state, its session, or history."""

import msgspec
from sqlalchemy import delete, insert, select, text, update

from contract.result import Result, Status
from contract.wire import decode
from service.db.tables.checks import check_, check_state
from service.db.tables.runs import job as job_table
from service.db.tables.runs import late_result, run_final, session
from service.jobs.settle import expire_jobs
from service.results.ingest import Verdict
from service.sessions.model import SessionFinished
from tests.builders.world import RETRY, World, a_result, a_strangers_location, kinds_of


async def test_a_result_settles_its_run(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    due_ms = world.time.now
    world.time.pass_s(1)
    [job] = await world.claim()
    world.time.pass_s(3)
    sent = a_result(job, started_after_s=0.5, took_s=2)
    assert await world.submit(sent) == [Verdict.ACCEPTED]
    [stored] = await world.results(check_id)
    assert (stored.result_type, stored.status, stored.location) == ("FINAL", "PASSED", "cellar")
    assert (stored.scheduled_ms, stored.ts) == (due_ms, due_ms + 1500)
    assert (stored.stopped_ms, stored.created_ms) == (due_ms + 3500, due_ms + 4000)
    assert stored.response_time_ms == 12.5
    [body] = await world.rows(select(run_final.c.body).where(run_final.c.run_id == stored.run_id))
    assert decode(body[0], Result) == sent


async def test_a_result_that_comes_twice_counts_once(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    [job] = await world.claim()
    verdicts = [await world.submit(a_result(job)) for _ in range(3)]
    assert verdicts == [[Verdict.ACCEPTED], [Verdict.DUPLICATE], [Verdict.DUPLICATE]]
    assert len(await world.results(check_id)) == 1
    assert await world.rows(select(late_result)) == []


async def test_a_result_twice_in_one_submission_counts_once(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    [job] = await world.claim()
    verdicts = await world.submit(a_result(job), a_result(job))
    assert verdicts == [Verdict.ACCEPTED, Verdict.DUPLICATE]
    assert len(await world.results(check_id)) == 1


async def test_a_result_under_an_old_fence_is_kept_as_history_and_never_counts(
    world: World,
) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    [slow] = await world.claim("claim-1", agent_id="agent-1")
    world.time.pass_s(60)
    await world.change(lambda c, now: expire_jobs(c, watched_since_ms=0, now_ms=now))
    [other] = await world.claim("claim-2", agent_id="agent-2")
    assert await world.submit(a_result(slow, Status.FAILED)) == [Verdict.DUPLICATE]
    assert await world.results(check_id) == []
    assert await world.submit(a_result(other)) == [Verdict.ACCEPTED]
    assert await world.submit(a_result(slow, Status.FAILED)) == [Verdict.DUPLICATE]
    assert await kinds_of(world, check_id) == [("FINAL", "PASSED", 1)]
    late = await world.rows(select(late_result))
    assert [(row.run_id, row.fence, row.agent_id) for row in late] == [(1, slow.fence, "agent-1")]


async def test_a_late_result_counts_while_nobody_else_has_the_job(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    [job] = await world.claim()
    world.time.pass_s(60)
    await world.change(lambda c, now: expire_jobs(c, watched_since_ms=0, now_ms=now))
    assert await world.submit(a_result(job)) == [Verdict.ACCEPTED]
    assert await world.claim("claim-2") == []
    assert await kinds_of(world, check_id) == [("FINAL", "PASSED", 1)]


async def test_a_result_after_the_run_was_missed_is_history(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    for turn in range(3):
        [job] = await world.claim(f"claim-{turn}")
        world.time.pass_s(60)
        await world.change(lambda c, now: expire_jobs(c, watched_since_ms=0, now_ms=now))
    assert await world.submit(replace_fence(a_result(job), 1)) == [Verdict.DUPLICATE]
    assert await world.submit(a_result(job)) == [Verdict.DUPLICATE]
    assert await world.submit(a_result(job)) == [Verdict.DUPLICATE]
    assert await kinds_of(world, check_id) == [("FINAL", "MISSED", 1)]
    assert len(await world.rows(select(late_result))) == 2


def replace_fence(result: Result, fence: int) -> Result:
    return msgspec.structs.replace(result, fence=fence)


async def test_a_result_of_no_job_is_rejected(world: World) -> None:
    await world.queue(await world.check())
    [job] = await world.claim()
    unknown = msgspec.structs.replace(a_result(job), job_id="999")
    assert await world.submit(unknown) == [Verdict.UNKNOWN_JOB]


async def test_a_result_with_a_fence_that_was_never_given_is_rejected(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    [job] = await world.claim()
    assert await world.submit(replace_fence(a_result(job), job.fence + 6)) == [Verdict.FOREIGN_JOB]
    assert await world.results(check_id) == []


async def test_another_location_cannot_settle_a_run(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    [job] = await world.claim()
    attic = await world.location("attic")
    assert await world.submit(a_result(job), location=attic) == [Verdict.FOREIGN_JOB]
    assert await world.submit(a_result(job)) == [Verdict.ACCEPTED]


async def test_a_good_result_is_taken_beside_a_bad_one(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    [job] = await world.claim()
    unknown = msgspec.structs.replace(a_result(job), job_id="999")
    assert await world.submit(unknown, a_result(job)) == [Verdict.UNKNOWN_JOB, Verdict.ACCEPTED]


COUNT_AFRESH = {
    "sqlite": "DELETE FROM sqlite_sequence WHERE name = 'job'",
    "postgresql": "ALTER SEQUENCE job_id_seq RESTART",
}


async def test_a_result_from_before_a_restore_does_not_count_for_the_run_with_its_number(
    world: World,
) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    [stale] = await world.claim("claim-1")
    await world.database.write(lambda c: c.execute(delete(job_table)))
    await world.database.write(lambda c: c.execute(text(COUNT_AFRESH[c.dialect.name])))
    await world.queue(check_id)
    [job] = await world.claim("claim-2")
    assert job.job_id == stale.job_id
    assert await world.submit(a_result(stale)) != [Verdict.ACCEPTED]
    assert await world.submit(a_result(job, Status.DEGRADED)) == [Verdict.ACCEPTED]
    assert [row.status for row in await world.results(check_id)] == ["DEGRADED"]


async def test_an_attempt_that_comes_twice_counts_once(world: World) -> None:
    check_id = await world.check(doc=RETRY)
    await world.queue(check_id)
    [job] = await world.claim()
    failed = a_result(job, Status.FAILED)
    assert await world.submit(failed, failed) == [Verdict.ACCEPTED, Verdict.DUPLICATE]
    assert await world.submit(failed) == [Verdict.DUPLICATE]
    assert await kinds_of(world, check_id) == [("ATTEMPT", "FAILED", 1)]
    assert await world.rows(select(late_result)) == []


async def test_a_check_keeps_its_last_state_and_since_when(world: World) -> None:
    check_id = await world.check()
    seen = []
    for status in (Status.PASSED, Status.PASSED, Status.FAILED):
        await world.queue(check_id)
        [job] = await world.claim(f"claim-{len(seen)}")
        await world.submit(a_result(job, status))
        [state] = await world.rows(select(check_state))
        seen.append((state.status, state.since_ms, state.result_ms))
        world.time.pass_s(10)
    start = seen[0][1]
    assert seen == [
        ("PASSED", start, start),
        ("PASSED", start, start + 10_000),
        ("FAILED", start + 20_000, start + 20_000),
    ]


async def test_a_missed_run_does_not_change_a_checks_state(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    [job] = await world.claim()
    await world.submit(a_result(job))
    world.time.pass_s(1)  # of two results of one moment either may be the newer
    await world.queue(check_id)
    world.time.pass_s(400)
    await world.change(lambda c, now: expire_jobs(c, watched_since_ms=0, now_ms=now))
    assert [row.status for row in await world.rows(select(check_state))] == ["PASSED"]


async def test_the_last_run_of_a_session_ends_it(world: World) -> None:
    attic = await world.location("attic")
    check_id = await world.check(locations=(world.location_id, attic))
    row = {
        "id": "session-1",
        "account_id": world.account_id,
        "check_id": check_id,
        "check_type": "URL",
        "name": "Front page",
        "locations": ["cellar", "attic"],
        "status": "STARTED",
        "pending": 2,
        "started_ms": world.time.now,
    }
    await world.database.write(lambda c: c.execute(insert(session), row))
    await world.queue(check_id, world.location_id, attic, session_id="session-1")
    finished: list[SessionFinished] = []
    world.database.listen(SessionFinished, finished.append)
    [one] = await world.claim("claim-1")
    [two] = await world.claim("claim-2", location=attic)
    await world.submit(a_result(one, Status.FAILED))
    assert finished == []
    await world.submit(a_result(two), location=attic)
    assert finished == [SessionFinished("session-1")]
    [ended] = await world.rows(select(session))
    assert (ended.status, ended.pending) == ("FAILED", 0)


async def test_results_of_a_deactivated_check_still_count(world: World) -> None:
    check_id = await world.check()
    await world.queue(check_id)
    [job] = await world.claim()
    await world.database.write(lambda c: c.execute(update(check_).values(activated=False)))
    assert await world.submit(a_result(job)) == [Verdict.ACCEPTED]


async def test_a_stranger_who_guesses_a_run_leaves_no_trace(world: World) -> None:
    strange = await a_strangers_location(world)
    check_id = await world.check()
    await world.queue(check_id)
    [job] = await world.claim()
    old = a_result(job)
    world.time.pass_s(61)
    await world.change(lambda c, now: expire_jobs(c, watched_since_ms=0, now_ms=now))
    [again] = await world.claim("claim-2")
    assert await world.submit(old, location=strange) == [Verdict.FOREIGN_JOB]
    await world.submit(a_result(again))
    assert await world.submit(old, location=strange) == [Verdict.UNKNOWN_JOB]
    guessed = a_result(again, check_id="none", fence=9)
    assert await world.submit(guessed) == [Verdict.UNKNOWN_JOB]
    assert await world.rows(select(late_result)) == []


async def test_a_late_result_of_another_place_of_the_account_is_history(world: World) -> None:
    attic = await world.location("attic")
    check_id = await world.check(
        doc={"retryStrategy": {**RETRY["retryStrategy"], "sameRegion": False}},
        locations=(world.location_id, attic),
    )
    await world.queue(check_id)
    [job] = await world.claim()
    await world.submit(a_result(job, Status.FAILED))
    world.time.pass_s(10)
    [again] = await world.claim("claim-2", location=attic)
    sent = a_result(job, attempt=2)
    assert await world.submit(sent) == [Verdict.DUPLICATE]
    assert await world.submit(a_result(again), location=attic) == [Verdict.ACCEPTED]


async def test_a_mad_duration_keeps_no_other_result_out(world: World) -> None:
    await world.queue(await world.check())
    await world.queue(await world.check())
    first, second = await world.claim()
    mad = a_result(first, started_after_s=1e308, took_s=1e308)
    assert await world.submit(mad, a_result(second)) == [Verdict.ACCEPTED, Verdict.ACCEPTED]
