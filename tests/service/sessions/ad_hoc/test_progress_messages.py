"""What those who follow a test session are sent."""

import pytest

from contract.result import Failure, FailureKind, LogLine, Outcome, Status
from service.jobs.settle import expire_jobs
from service.sessions import store
from service.sessions.ad_hoc.progress_messages import ProgressMessage, load_messages
from service.sessions.model import ProgressKind, RunProgressed
from tests.builders.claimed_jobs import claim, submit
from tests.builders.code_bundles import a_bundle, suite_body
from tests.builders.followed_tests import SUITE, listen, start_test
from tests.builders.world import World, a_result
from tests.servers.public_api import ApiUser, PublicApi


async def sent(world: World, notice: RunProgressed) -> ProgressMessage | None:
    found = await world.change(lambda c, now: load_messages(c, notice, now_ms=now))
    assert len(found) <= 1
    return found[0] if found else None


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


@pytest.mark.parametrize(
    ("status", "wanted", "subtopics"),
    [
        (Status.PASSED, True, ["stream-logs", "result"]),
        (Status.PASSED, False, ["result"]),
        # Its client prints that log with the result.
        (Status.FAILED, True, ["result"]),
    ],
)
async def test_the_log_of_a_suite_that_passed_comes_before_its_result_if_it_is_wanted(
    api: PublicApi, alice: ApiUser, status: Status, *, wanted: bool, subtopics: list[str]
) -> None:
    heard: list[RunProgressed] = []
    api.database.listen(RunProgressed, heard.append)
    source = {"checkRunSuiteId": SUITE, "checkRunId": "run-1"}
    suite = {**suite_body(await a_bundle(alice)), "checkType": "PLAYWRIGHT", "sourceInfo": source}
    body = {
        "checkRunJobs": [suite],
        "runLocation": {"type": "PRIVATE", "slugName": "default"},
        "streamLogs": wanted,
    }
    assert (await alice.post("/v1/test-sessions/run", body)).status == 202
    (job,) = await claim(api)
    line = LogLine(after_ms=5, level="INFO", message="Running 1 test")
    failure = Failure(kind=FailureKind.SCRIPT, message="no") if status is Status.FAILED else None
    await submit(api, job, Outcome(status=status, failure=failure, log=(line,)))
    ended = next(one for one in heard if one.kind is ProgressKind.RESULT)
    messages = await api.database.read(lambda c: load_messages(c, ended, now_ms=0))

    assert [one.subtopic for one in messages] == subtopics
    logs = [one.body["logs"] for one in messages if one.subtopic == "stream-logs"]
    assert [line["message"] for lines in logs for line in lines] == ["Running 1 test"] * len(logs)
    assert all(isinstance(line["timestamp"], int) for lines in logs for line in lines)


def a_notice(world: World, sequence_id: str, kind: ProgressKind) -> RunProgressed:
    return RunProgressed(
        kind=kind,
        account_id=world.account_id,
        suite_id=SUITE,
        sequence_id=sequence_id,
        run_id="home-run",
        check_id="check-1",
    )
