import asyncio
from typing import Any

import pytest
from sqlalchemy import select, update

from contract.checks import CheckType, Lane, PlaywrightSpec
from contract.job import Job
from contract.result import Failure, FailureKind, Outcome, Status
from contract.wire import decode
from service.db.tables.runs import job, session
from service.jobs.claims import ClaimScope, assign_jobs
from service.results.model import ResultType
from tests.builders.check_bodies import check_body
from tests.builders.code_bundles import a_bundle, suite_body
from tests.builders.stored_results import passed, store
from tests.builders.world import a_claimant
from tests.servers.public_api import Answer, ApiUser, PublicApi

TRIGGER = "/v1/check-sessions/trigger"
FAILED = Outcome(status=Status.FAILED, failure=Failure(kind=FailureKind.TLS, message="expired"))
DEGRADED = Outcome(status=Status.DEGRADED, response_time_ms=4000)


async def a_check(user: ApiUser, kind: str = "url", **fields: Any) -> dict[str, Any]:
    answer = await user.post(f"/v1/checks/{kind}", check_body(kind, **fields))
    assert answer.status == 201, answer.body
    check: dict[str, Any] = answer.body
    return check


async def started(user: ApiUser, check: dict[str, Any]) -> dict[str, Any]:
    answer = await user.post(TRIGGER, {"target": {"checkId": [check["id"]]}})
    assert answer.status == 201, answer.body
    (found,) = answer.body["sessions"]
    return dict(found)


async def triggered(user: ApiUser, target: Any) -> list[str]:
    answer = await user.post(TRIGGER, {"target": target})
    if answer.status == 404:
        assert answer.body["message"] == "No matching checks were found."
        return []
    assert answer.status == 201, answer.body
    return [one["name"] for one in answer.body["sessions"]]


@pytest.mark.parametrize(
    ("body", "field"),
    [({"checkId": ["x"]}, "checkId"), ({"target": {"tags": [["x"]]}}, "target.tags")],
)
async def test_a_misspelt_selector_runs_nothing(
    alice: ApiUser, body: dict[str, Any], field: str
) -> None:
    await a_check(alice)
    answer = await alice.post(TRIGGER, body)
    assert answer.status == 400
    known = "matchTags or checkId" if "." in field else "target or refreshCache"
    assert answer.body["message"] == f'"{field}" is not a known field; use {known}.'
    assert answer.body["validation"] == {"source": "payload", "keys": [field]}


async def test_a_trigger_starts_a_session_for_each_check(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    found = await started(alice, check)
    assert found["checkId"] == check["id"]
    assert (found["checkType"], found["name"]) == ("URL", "Home")
    assert (found["status"], found["stoppedAt"]) == ("STARTED", None)
    assert found["runLocations"] == ["default"]
    assert found["checkSessionLink"].endswith(found["checkSessionId"])
    rows = await api.database.read(lambda c: c.execute(select(job)).all())
    assert [(row.session_id, row.source) for row in rows] == [
        (found["checkSessionId"], "TRIGGER_API")
    ]


async def test_a_target_chooses_checks(alice: ApiUser) -> None:
    a = await a_check(alice, name="A", tags=["prod", "web"])
    b = await a_check(alice, name="B", tags=["prod"])
    await a_check(alice, name="Off", tags=["prod"], activated=False)
    await a_check(alice, "heartbeat", tags=["prod"])

    assert await triggered(alice, None) == ["A", "B"]
    assert await triggered(alice, {}) == ["A", "B"]
    assert await triggered(alice, {"checkId": []}) == []
    assert await triggered(alice, {"matchTags": []}) == []
    assert await triggered(alice, {"matchTags": [[]]}) == []
    assert await triggered(alice, {"matchTags": [["web"], []]}) == ["A"]
    assert await triggered(alice, {"matchTags": [["!"]]}) == []
    assert await triggered(alice, {"checkId": [], "matchTags": [["prod"]]}) == []
    assert await triggered(alice, {"matchTags": [["prod", "web"]]}) == ["A"]
    assert await triggered(alice, {"matchTags": [["prod", "!web"], ["nope"]]}) == ["B"]
    assert await triggered(alice, {"checkId": [b["id"]]}) == ["B"]
    assert await triggered(alice, {"checkId": [a["id"]], "matchTags": [["!web"]]}) == []
    assert await triggered(alice, {"checkId": ["nope"]}) == []


@pytest.mark.parametrize("selector", ["checkId", "matchTags"])
async def test_a_selector_that_is_null_runs_no_check_at_all(alice: ApiUser, selector: str) -> None:
    await a_check(alice)
    asked = await alice.post("/v1/check-sessions/trigger", {"target": {selector: None}})
    assert asked.status == 400
    assert asked.body["message"] == f'"target.{selector}" is null; use an array, or omit it.'


async def test_ids_that_led_to_no_session_are_told(alice: ApiUser) -> None:
    good, off = await a_check(alice), await a_check(alice, activated=False)
    beat = await a_check(alice, "heartbeat")
    ids = [off["id"], good["id"], "nope", beat["id"], "nope"]
    answer = await alice.post(TRIGGER, {"target": {"checkId": ids}})
    assert answer.status == 201
    assert [one["checkId"] for one in answer.body["sessions"]] == [good["id"]]
    assert answer.body["notRun"] == sorted({off["id"], "nope", beat["id"]})
    answer = await alice.post(TRIGGER, {"target": {"checkId": [good["id"]]}})
    assert set(answer.body) == {"sessions"}


@pytest.mark.parametrize("by", ["id", "tag", "all"])
async def test_a_trigger_that_means_heartbeats_alone_says_that_they_are_not_run(
    alice: ApiUser, by: str
) -> None:
    beat = await a_check(alice, "heartbeat", tags=["beat"])
    target = {"id": {"checkId": [beat["id"]]}, "tag": {"matchTags": [["beat"]]}, "all": {}}[by]
    answer = await alice.post(TRIGGER, {"target": target})
    assert answer.status == 404
    assert answer.body["message"] == (
        "No matching checks were found. A heartbeat is never run on demand: it waits for pings."
    )


async def test_a_target_may_be_long(alice: ApiUser) -> None:
    check = await a_check(alice, name="A", tags=["prod"])
    many = {"matchTags": [*[["nope"]] * 99, ["prod"] * 20], "checkId": [check["id"], *["x"] * 9999]}
    assert await triggered(alice, many) == ["A"]


async def test_a_tag_of_the_group_chooses_its_checks(alice: ApiUser) -> None:
    group = await alice.post("/v1/check-groups", {"name": "Shop", "tags": ["shop"]})
    await a_check(alice, name="In", tags=["web"], groupId=group.body["id"])
    await a_check(alice, name="Out", tags=["web"])

    assert await triggered(alice, {"matchTags": [["shop"]]}) == ["In"]
    assert await triggered(alice, {"matchTags": [["web", "shop"]]}) == ["In"]
    assert await triggered(alice, {"matchTags": [["web", "!shop"]]}) == ["Out"]
    assert await triggered(alice, {"matchTags": [["shop"], ["!shop"]]}) == ["In", "Out"]


async def test_a_trigger_needs_no_body(alice: ApiUser) -> None:
    await a_check(alice)
    assert (await alice.post(TRIGGER)).status == 201


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({"target": {"matchTags": ["prod"]}}, "target.matchTags[0]"),
        ({"target": {"matchTags": [["prod"]] * 101}}, "target.matchTags"),
        ({"target": {"matchTags": [["prod"] * 21]}}, "target.matchTags[0]"),
        ({"target": {"checkId": "x"}}, "target.checkId"),
        ({"target": {"checkId": ["x"] * 10_001}}, "target.checkId"),
        ({"refreshCache": "no"}, "refreshCache"),
    ],
)
async def test_a_wrong_trigger_is_named(alice: ApiUser, body: Any, key: str) -> None:
    answer = await alice.post(TRIGGER, body)
    assert answer.status == 400
    assert answer.body["validation"]["keys"] == [key]


async def test_triggers_of_one_moment_have_runs_of_their_own(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check(alice)
    sessions = await asyncio.gather(*(started(alice, check) for _ in range(30)))
    rows = await api.database.read(lambda c: c.execute(select(job.c.session_id)).all())
    ids = {one["checkSessionId"] for one in sessions}
    assert len(ids) == 30
    assert {row.session_id for row in rows} == ids


async def test_a_session_ends_with_its_last_run(api: PublicApi, alice: ApiUser) -> None:
    await alice.post("/v1/private-locations", {"name": "Cellar", "slugName": "cellar"})
    check = await a_check(alice, privateLocations=["default", "cellar"])
    found = await started(alice, check)
    path = f"/v1/check-sessions/{found['checkSessionId']}"

    await store(api, check, DEGRADED, session_id=found["checkSessionId"])
    half = (await alice.get(path)).body
    assert (half["status"], half["stoppedAt"]) == ("PROGRESS_DEGRADED", None)

    await store(api, check, passed(), session_id=found["checkSessionId"])
    whole = (await alice.get(path)).body
    assert whole["status"] == "DEGRADED"
    assert whole["stoppedAt"] is not None
    assert len(whole["results"]) == 2
    assert (await alice.get(f"{path}/completion")).body == whole


async def test_results_of_a_session_have_the_known_shape(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    found = await started(alice, check)
    one = {"session_id": found["checkSessionId"], "run_id": 5}
    await store(api, check, FAILED, result_type=ResultType.ATTEMPT, **one)
    await store(api, check, passed(), fence=2, attempt=2, started_ms=1_790_000_009_000, **one)
    answer = await alice.get(f"/v1/check-sessions/{found['checkSessionId']}/completion")
    assert answer.body["status"] == "PASSED"
    first, second = answer.body["results"]
    assert (first["resultType"], first["hasFailures"]) == ("ATTEMPT", True)
    assert {
        "checkId": check["id"],
        "checkType": "URL",
        "name": "Home",
        "runLocation": "default",
        "resultType": "FINAL",
        "hasErrors": False,
        "hasFailures": False,
        "isDegraded": False,
        "aborted": False,
    }.items() <= second.items()
    linked = second["checkResultLink"].removeprefix(alice.url)
    assert (await alice.get(linked)).body["id"] == second["checkResultId"]


async def waited(user: ApiUser, session_id: str, seconds: float = 30) -> Answer:
    path = f"/v1/check-sessions/{session_id}/completion?maxWaitSeconds={seconds}"
    return await user.get(path)


async def test_everyone_who_waits_is_told_of_the_end(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    found = await started(alice, check)
    waiting = [asyncio.create_task(waited(alice, found["checkSessionId"])) for _ in range(20)]
    await asyncio.sleep(0.05)
    await store(api, check, FAILED, session_id=found["checkSessionId"])
    answers = await asyncio.gather(*waiting)
    assert {(answer.status, answer.body["status"]) for answer in answers} == {(200, "FAILED")}


async def test_no_end_is_slept_through(api: PublicApi, alice: ApiUser) -> None:
    """The end races the beginning of the wait, in both orders."""
    check = await a_check(alice)
    for _ in range(20):
        found = await started(alice, check)
        answer, _stored = await asyncio.gather(
            waited(alice, found["checkSessionId"]),
            store(api, check, passed(), session_id=found["checkSessionId"]),
        )
        assert answer.status == 200


async def test_a_wait_that_is_over_says_to_ask_again(alice: ApiUser) -> None:
    found = await started(alice, await a_check(alice))
    answer = await waited(alice, found["checkSessionId"], 1)
    assert answer.status == 408
    assert answer.body["error"] == "Request Time-out"
    assert answer.body["statusCode"] == 408
    assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize("seconds", ["0", "31", "x", "nan", "-1"])
async def test_a_wait_is_1_to_30_seconds(alice: ApiUser, seconds: str) -> None:
    answer = await alice.get(f"/v1/check-sessions/x/completion?maxWaitSeconds={seconds}")
    assert answer.status == 400
    assert answer.body["validation"] == {"source": "query", "keys": ["maxWaitSeconds"]}


async def test_a_session_past_its_deadline_has_timed_out(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    found = await started(alice, check)
    long_ago = update(session).values(started_ms=session.c.started_ms - 21 * 60_000)
    await api.database.write(lambda c: c.execute(long_ago) and None)
    answer = await waited(alice, found["checkSessionId"])
    assert (answer.status, answer.body["status"]) == (200, "TIMED_OUT")
    await store(api, check, passed(), session_id=found["checkSessionId"])
    assert (await waited(alice, found["checkSessionId"])).body["status"] == "TIMED_OUT"


async def test_a_session_whose_run_nobody_did_failed_with_an_error_and_did_not_time_out(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check(alice)
    found = await started(alice, check)
    await store(api, check, session_id=found["checkSessionId"])
    answer = await waited(alice, found["checkSessionId"])
    assert (answer.status, answer.body["status"]) == (200, "FAILED")
    (result,) = answer.body["results"]
    assert (result["hasErrors"], result["hasFailures"], result["aborted"]) == (True, False, True)


async def test_a_session_of_a_deleted_check_ends(alice: ApiUser) -> None:
    check = await a_check(alice)
    found = await started(alice, check)
    waiting = asyncio.create_task(waited(alice, found["checkSessionId"]))
    await asyncio.sleep(0.05)
    await alice.delete(f"/v1/checks/{check['id']}")
    answer = await waiting
    assert (answer.status, answer.body["status"]) == (200, "TIMED_OUT")


async def test_nobody_waits_on_while_the_service_stops(api: PublicApi, alice: ApiUser) -> None:
    found = await started(alice, await a_check(alice))
    waiting = asyncio.create_task(waited(alice, found["checkSessionId"]))
    await asyncio.sleep(0.05)
    api.backend.waiters.close()
    assert (await waiting).status == 408


async def test_others_sessions_are_not_there(alice: ApiUser, charlie: ApiUser) -> None:
    check = await a_check(alice)
    found = await started(alice, check)
    path = f"/v1/check-sessions/{found['checkSessionId']}"
    answer = await charlie.get(path)
    assert (answer.status, answer.body["message"]) == (404, "No such check session.")
    assert (await charlie.get(f"{path}/completion")).status == 404
    assert await triggered(charlie, {"checkId": [check["id"]]}) == []


@pytest.mark.parametrize("refresh", [True, False])
async def test_a_suite_is_told_whether_to_install_its_packages_anew(
    api: PublicApi, alice: ApiUser, *, refresh: bool
) -> None:
    body = suite_body(await a_bundle(alice))
    assert (await alice.post("/v1/checks/playwright", body)).status == 201
    await alice.post(TRIGGER, {"refreshCache": refresh})
    claimant = a_claimant(slots={Lane.MAIN: 1}, check_types=frozenset({CheckType.PLAYWRIGHT}))
    table = ClaimScope(alice.secrets.location_id, api.backend.vault)
    dealt = await api.database.write(
        lambda c: assign_jobs(c, table, [claimant], now_ms=api.backend.clock.now_ms(c))
    )
    spec = decode(dealt.jobs[0][0], Job).spec
    assert isinstance(spec, PlaywrightSpec)
    assert spec.refresh_cache == refresh


async def test_the_second_form_tells_what_started_a_session(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    target = {"target": {"checkId": [check["id"]]}}
    answer = await alice.post("/v2/check-sessions/trigger", target)
    (begun,) = answer.body["sessions"]
    await store(api, check, passed(), session_id=begun["checkSessionId"])
    path = f"/check-sessions/{begun['checkSessionId']}/completion"
    ended = (await alice.get(f"/v2{path}")).body
    (result,) = ended["results"]

    assert (answer.status, begun["runSource"]) == (201, "TRIGGER_API")
    assert (ended["status"], ended["runSource"]) == ("PASSED", "TRIGGER_API")
    assert result["isCancelled"] is False
    first = (await alice.get(f"/v1{path}")).body
    assert {**first["results"][0], "isCancelled": False} == result
    assert {**first, "runSource": "TRIGGER_API", "results": [result]} == ended
