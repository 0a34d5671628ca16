"""Whoever follows the runs of a test session is told of each step, and nobody else is."""

from sqlalchemy import select

from contract.result import Status
from service.db.tables.runs import test_session as sessions_table
from service.jobs.settle import expire_jobs
from service.sessions import store
from service.sessions.model import ProgressKind, RunProgressed
from tests.builders.followed_tests import SUITE, listen, start_test
from tests.builders.world import World, a_result, kinds_of

AT_ONCE = {"type": "FIXED", "baseBackoffSeconds": 0, "maxRetries": 1}


async def test_a_run_is_announced_when_it_begins_and_with_each_result(world: World) -> None:
    heard = listen(world)
    test_id = await start_test(world, "home", retry_strategy=AT_ONCE)
    [job] = await world.claim("claim-1")
    await world.submit(a_result(job, Status.FAILED))
    world.time.pass_s(1)
    [again] = await world.claim("claim-2")
    await world.submit(a_result(again))

    [session] = await world.database.read(lambda c: store.list_members(c, test_id))
    first, last = await world.results(session.check_id)
    common = {
        "account_id": world.account_id,
        "suite_id": SUITE,
        "sequence_id": session.id,
        "run_id": "home-run",
        "check_id": session.check_id,
    }
    started = RunProgressed(kind=ProgressKind.STARTED, **common)
    assert heard == [
        started,
        RunProgressed(kind=ProgressKind.RESULT, result_id=first.id, **common),
        started,
        RunProgressed(kind=ProgressKind.RESULT, result_id=last.id, **common),
    ]
    assert await kinds_of(world, session.check_id) == [
        ("ATTEMPT", "FAILED", 1),
        ("FINAL", "PASSED", 2),
    ]


async def test_a_run_that_nobody_takes_is_announced_as_an_error(world: World) -> None:
    heard = listen(world)
    await start_test(world, "home")
    world.time.pass_s(361)
    await world.change(lambda c, now: expire_jobs(c, watched_since_ms=0, now_ms=now))
    [only] = heard
    assert only.kind is ProgressKind.ERROR
    assert only.result_id is not None


async def test_without_a_suite_nobody_is_told(world: World) -> None:
    heard = listen(world)
    await start_test(world, "home", suite_id=None)
    [job] = await world.claim()
    await world.submit(a_result(job))
    assert heard == []


async def test_runs_of_stored_checks_are_not_announced(world: World) -> None:
    heard = listen(world)
    await world.queue(await world.check())
    [job] = await world.claim()
    await world.submit(a_result(job))
    assert heard == []


async def test_without_a_strategy_of_its_own_a_failed_run_is_final(world: World) -> None:
    test_id = await start_test(world, "home")
    [job] = await world.claim()
    await world.submit(a_result(job, Status.FAILED))
    [session] = await world.database.read(lambda c: store.list_members(c, test_id))
    assert await kinds_of(world, session.check_id) == [("FINAL", "FAILED", 1)]


async def test_the_last_check_ends_the_session_and_one_failure_fails_it(world: World) -> None:
    await start_test(world, "home", "cart")
    one, two = await world.claim()
    query = select(sessions_table)
    await world.submit(a_result(one, Status.FAILED))
    [going_on] = await world.rows(query)
    await world.submit(a_result(two))
    [ended] = await world.rows(query)
    assert (going_on.status, going_on.pending, going_on.failed) == ("RUNNING", 1, 1)
    assert (ended.status, ended.pending, ended.failed) == ("FAILED", 0, 1)
    assert ended.stopped_ms is not None
