import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from contract.result import Failure, FailureKind, Outcome, Status
from service.audit import audit
from service.db.tables.runs import job, session
from service.triggers import links
from tests.builders.check_bodies import check_body
from tests.builders.stored_results import passed, store
from tests.servers.public_api import Answer, ApiUser, PublicApi, serve_public_api

FAILED = Outcome(
    status=Status.FAILED,
    response_time_ms=80.9,
    failure=Failure(kind=FailureKind.HTTP_STATUS, message="404"),
)


async def a_check(user: ApiUser, **fields: Any) -> dict[str, Any]:
    answer = await user.post("/v1/checks/url", check_body("url", **fields))
    assert answer.status == 201, answer.body
    check: dict[str, Any] = answer.body
    return check


async def a_link(user: ApiUser, check: dict[str, Any]) -> str:
    made = (await user.post(f"/v1/triggers/checks/{check['id']}")).body
    return f"/checks/{check['id']}/trigger/{made['token']}"


def stranger(api: PublicApi) -> ApiUser:
    """Somebody without a good key."""
    return ApiUser(api.url, api.http, api.alice.secrets, {"authorization": "Bearer nothing"})


async def called(
    api: PublicApi, check: dict[str, Any], link: str, *outcomes: Outcome | None
) -> Answer:
    """Call the link; agents bring these outcomes."""
    answer = asyncio.create_task(stranger(api).get(link))
    session_id, query = None, select(session.c.id).where(session.c.stopped_ms.is_(None))
    while session_id is None:
        await asyncio.sleep(0.01)
        session_id = await api.database.read(lambda c: c.execute(query).scalar())
        if answer.done():
            return await answer
    for outcome in outcomes:
        await store(api, check, outcome, session_id=session_id)
    return await answer


@pytest.mark.parametrize(
    ("outcome", "time_ms"),
    [(passed(12.9), 12), (Outcome(status=Status.DEGRADED, response_time_ms=4000), 4000)],
)
async def test_a_link_answers_200_when_the_check_passes(
    api: PublicApi, alice: ApiUser, outcome: Outcome, time_ms: int
) -> None:
    check = await a_check(alice)
    answer = await called(api, check, await a_link(alice, check), outcome)
    assert (answer.status, answer.body) == (200, {"hasFailures": False, "responseTime": time_ms})
    assert answer.headers["cache-control"] == "no-store"


async def test_a_link_answers_503_when_the_check_fails(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    answer = await called(api, check, await a_link(alice, check), FAILED)
    assert answer.status == 503
    assert (answer.body["hasFailures"], answer.body["responseTime"]) == (True, 80)
    assert (answer.body["statusCode"], answer.body["error"]) == (503, "Service Unavailable")
    session_id = answer.body["attributes"]["checkSessionId"]
    assert answer.body["message"] == (
        f"The check Home did not pass: FAILED at default (session {session_id})."
    )
    run = (await alice.get(f"/v1/check-sessions/{session_id}")).body
    assert (run["checkId"], run["status"]) == (check["id"], "FAILED")


async def test_a_run_that_nobody_did_is_no_failure_and_no_pass(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check(alice)
    answer = await called(api, check, await a_link(alice, check), None)
    assert (answer.status, answer.body["hasFailures"]) == (503, False)
    assert "MISSED at default" in answer.body["message"]


async def test_one_location_that_fails_is_enough(api: PublicApi, alice: ApiUser) -> None:
    await alice.post("/v1/private-locations", {"name": "Cellar", "slugName": "cellar"})
    check = await a_check(alice, privateLocations=["default", "cellar"])
    answer = await called(api, check, await a_link(alice, check), passed(), FAILED)
    assert (answer.status, answer.body["hasFailures"]) == (503, True)


async def test_a_link_may_choose_one_location(api: PublicApi, alice: ApiUser) -> None:
    await alice.post("/v1/private-locations", {"name": "Cellar", "slugName": "cellar"})
    check = await a_check(alice, privateLocations=["default", "cellar"])
    link = await a_link(alice, check)
    answer = await called(api, check, f"{link}?runLocation=cellar", passed())
    assert answer.status == 200
    wrong = await alice.get(f"{link}?runLocation=attic")
    assert wrong.status == 400
    assert (
        wrong.body["message"]
        == '"runLocation" is not a location of the check; use default, cellar.'
    )


async def test_what_only_tells_of_a_deployment_is_passed_over(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check(alice)
    link = await a_link(alice, check)
    told = f"{link}?deployment=true&repository=a/b&sha=1&environmentName=x&deploymentId=9"
    assert (await called(api, check, told, passed())).status == 200


async def test_a_link_that_is_not_there_is_404_and_runs_nothing(
    api: PublicApi, alice: ApiUser
) -> None:
    check, other = await a_check(alice), await a_check(alice)
    link = await a_link(alice, check)
    for wrong in (f"{link}x", link.replace(check["id"], other["id"]), f"/checks/x/trigger/{link}"):
        assert (await stranger(api).get(wrong)).status == 404
    runs = await api.database.read(
        lambda c: c.execute(select(job.c.id).where(job.c.session_id.is_not(None))).all()
    )
    assert runs == []


async def test_a_check_that_is_not_activated_is_not_run(alice: ApiUser) -> None:
    check = await a_check(alice, activated=False)
    answer = await alice.get(await a_link(alice, check))
    assert (answer.status, answer.body["message"]) == (404, "No matching checks were found.")


async def test_a_call_is_noted(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    await called(api, check, await a_link(alice, check), passed())
    read = (await alice.get(f"/v1/triggers/checks/{check['id']}")).body
    assert read["called_at"] is not None


async def test_a_run_by_a_link_is_in_the_audit_log(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    link = await a_link(alice, check)
    await called(api, check, f"{link}?runLocation=default", passed())
    (entry,) = await api.database.read(lambda c: audit.list_newest(c, limit=1))
    assert (entry.operation, entry.resource, entry.resource_id) == (
        "runCheckByLink",
        "checks",
        check["id"],
    )
    assert (entry.account_id, entry.key_id) == (alice.secrets.account_id, None)
    assert (entry.fields, entry.address) == (("runLocation",), "127.0.0.1")
    assert link.rpartition("/")[2] not in str(entry)


async def test_a_link_that_runs_nothing_is_not_in_the_audit_log(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check(alice)
    link = await a_link(alice, check)
    for wrong in (f"{link}x", f"{link}?runLocation=attic"):
        assert (await stranger(api).get(wrong)).status in {400, 404}
    (entry,) = await api.database.read(lambda c: audit.list_newest(c, limit=1))
    assert entry.operation == "createCheckTrigger"


async def test_a_run_that_takes_too_long_goes_on(
    alice: ApiUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "MAX_WAIT_S", 0.05)
    check = await a_check(alice)
    answer = await alice.get(await a_link(alice, check))
    assert answer.status == 408
    assert "retry-after" not in answer.headers
    session_id = answer.body["attributes"]["checkSessionId"]
    read = (await alice.get(f"/v1/check-sessions/{session_id}")).body
    assert read["status"] == "STARTED"


async def test_a_trigger_is_called_ten_times_a_minute_at_most(tmp_path: Path) -> None:
    async with serve_public_api(tmp_path, per_minute=10) as api:
        check = await a_check(api.alice, activated=False)
        link = await a_link(api.alice, check)
        answers = [await api.alice.get(link) for _ in range(11)]
    assert [one.status for one in answers] == [404] * 10 + [429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 6
