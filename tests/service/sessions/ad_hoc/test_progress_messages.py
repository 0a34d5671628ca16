"""What those who follow a test session are sent."""

from contract.result import Status
from service.jobs.settle import expire_jobs
from service.sessions import store
from service.sessions.ad_hoc.progress_messages import ProgressMessage, load_message
from service.sessions.model import ProgressKind, RunProgressed
from tests.builders.followed_tests import SUITE, listen, start_test
from tests.builders.world import World, a_result


async def sent(world: World, notice: RunProgressed) -> ProgressMessage | None:
    return await world.change(lambda c, now: load_message(c, notice, now_ms=now))


async def test_each_step_of_a_run_has_its_message(world: World) -> None:
    heard = listen(world)
    await start_test(world, "home")
    [job] = await world.claim()
    await world.submit(a_result(job, Status.FAILED))
    began, ended = [await sent(world, one) for one in heard]

    assert began == ProgressMessage("run-start", {})
    assert ended is not None
    assert ended.subtopic == "result"
    assert ended.body["resultType"] == "FINAL"
    assert ended.body["testResultId"] == ended.body["result"]["id"]
    assert ended.body["result"]["checkRunData"]["requestError"] == "refused"


async def test_a_run_that_nobody_did_has_a_sentence(world: World) -> None:
    heard = listen(world)
    await start_test(world, "home")
    world.time.pass_s(361)
    await world.change(lambda c, now: expire_jobs(c, watched_since_ms=0, now_ms=now))
    [message] = [await sent(world, one) for one in heard]

    assert message is not None
    assert message.subtopic == "error"
    assert "No agent that runs URL checks is connected" in message.body


async def test_a_run_that_was_cancelled_is_no_failure(world: World) -> None:
    test_id = await start_test(world, "home")
    [session] = await world.database.read(lambda c: store.list_members(c, test_id))
    message = await sent(world, a_notice(world, session.id, ProgressKind.CANCELLED))

    assert message is not None
    assert message.body["resultType"] == "FINAL"
    assert (message.body["result"]["isCancelled"], message.body["result"]["hasFailures"]) == (
        True,
        False,
    )


async def test_what_has_gone_has_no_message(world: World) -> None:
    test_id = await start_test(world, "home")
    [session] = await world.database.read(lambda c: store.list_members(c, test_id))

    assert await sent(world, a_notice(world, "gone", ProgressKind.CANCELLED)) is None
    assert await sent(world, a_notice(world, session.id, ProgressKind.RESULT)) is None


def a_notice(world: World, sequence_id: str, kind: ProgressKind) -> RunProgressed:
    return RunProgressed(
        kind=kind,
        account_id=world.account_id,
        suite_id=SUITE,
        sequence_id=sequence_id,
        run_id="home-run",
        check_id="check-1",
    )
