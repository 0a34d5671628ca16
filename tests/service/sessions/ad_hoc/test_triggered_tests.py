"""Copies of stored checks run once, elsewhere and with other variables, and count nowhere."""

from typing import Any

import pytest
from sqlalchemy import select

from contract.result import Outcome, Status
from service.db.tables.checks import check_state
from service.db.tables.job_inputs import variable
from service.sessions.ad_hoc import starting
from tests.builders.check_bodies import check_body
from tests.builders.claimed_jobs import claim, submit
from tests.servers.public_api import ApiUser, PublicApi

TRIGGER = "/next/test-sessions/trigger"
HERE = {"type": "PRIVATE", "slugName": "default"}
PASSED = Outcome(status=Status.PASSED)


def a_trigger(**fields: Any) -> dict[str, Any]:
    return {
        "name": "Trigger Session",
        "shouldRecord": True,
        "runLocation": HERE,
        "checkRunSuiteId": "suite-1",
        "targetTags": [],
        "environmentVariables": [],
        "repoInfo": None,
        "environment": None,
        "testRetryStrategy": None,
        "refreshCache": False,
        **fields,
    }


async def a_check(user: ApiUser, name: str, **fields: Any) -> Any:
    answer = await user.post("/v1/checks/api", check_body("api", name=name, **fields))
    assert answer.status == 201, answer.body
    return answer.body


async def test_a_copy_runs_with_more_variables_and_the_stored_check_learns_nothing(
    api: PublicApi, alice: ApiUser
) -> None:
    own = [
        {"key": "TOKEN", "value": "very-secret", "secret": True},
        {"key": "STAGE", "value": "live"},
        {"key": "USER", "value": "picket", "locked": True},
    ]
    request = {
        "method": "GET",
        "url": "https://shop.example/{{TOKEN}}/{{STAGE}}/{{USER}}",
        "basicAuth": {"username": "u", "password": "also-secret"},
    }
    check = await a_check(alice, "Shop", request=request, environmentVariables=own)
    extra = [{"key": "STAGE", "value": "staging"}]
    answer = await alice.post(TRIGGER, a_trigger(environmentVariables=extra))
    assert answer.status == 200, answer.body
    jobs = [one for one in await claim(api) if one.run_source == "TEST_RECORD"]
    (job,) = jobs
    await submit(api, job, PASSED)
    ended = (await alice.get(f"/v1/test-sessions/{answer.body['testSessionId']}")).body

    assert [one["id"] for one in answer.body["checks"]] == [check["id"]]
    assert set(answer.body["sequenceIds"]) == {check["id"]}
    assert {one.key: one.value for one in job.variables} == {
        "TOKEN": "very-secret",
        "STAGE": "staging",
        "USER": "picket",
    }
    assert "also-secret" in str(job.spec)
    assert ended["status"] == "PASSED"
    assert ended["results"][0]["checkId"] == check["id"]
    assert (await alice.get(f"/v1/check-results/{check['id']}")).body == []
    states = await api.database.read(lambda c: c.execute(select(check_state)).all())
    assert states == []
    owners = await api.database.read(
        lambda c: c.execute(select(variable.c.owner_id).distinct()).scalars().all()
    )
    assert owners == [check["id"]]


async def test_the_wanted_location_takes_the_place_of_the_checks_own(
    api: PublicApi, alice: ApiUser
) -> None:
    await alice.post("/v1/private-locations", {"name": "Attic", "slugName": "attic"})
    await a_check(alice, "Shop", privateLocations=["attic"])
    answer = await alice.post(TRIGGER, a_trigger())
    assert answer.status == 200, answer.body
    assert [one.check_name for one in await claim(api)] == ["Shop"]


async def test_tags_and_ids_choose_the_checks(api: PublicApi, alice: ApiUser) -> None:
    one = await a_check(alice, "One", tags=["shop", "live"])
    two = await a_check(alice, "Two", tags=["shop"])
    by_tags = (await alice.post(TRIGGER, a_trigger(targetTags=[["shop", "live"]]))).body
    by_id = (await alice.post(TRIGGER, a_trigger(checkId=[two["id"]]))).body

    assert set(by_tags["sequenceIds"]) == {one["id"]}
    assert set(by_id["sequenceIds"]) == {two["id"]}


async def test_nothing_that_matches_is_said_at_the_top_of_the_body(alice: ApiUser) -> None:
    answer = await alice.post(TRIGGER, a_trigger(targetTags=[["nothing"]]))
    assert answer.status == 403
    assert answer.body["errorCode"] == "ERR_NO_MATCHING_CHECKS"
    assert (answer.body["statusCode"], answer.body["error"]) == (403, "Forbidden")


async def test_a_session_that_is_not_recorded_has_no_id(alice: ApiUser) -> None:
    check = await a_check(alice, "Shop")
    answer = await alice.post(TRIGGER, a_trigger(shouldRecord=False))
    assert (answer.body["testSessionId"], answer.body["testResultIds"]) == (None, None)
    assert set(answer.body["sequenceIds"]) == {check["id"]}


async def test_checks_of_others_are_not_triggered(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice, "Shop")
    charlie = await api.another_user("Charlie")
    answer = await charlie.post(TRIGGER, a_trigger(checkId=[check["id"]]))
    assert answer.status == 403


async def test_no_more_checks_are_triggered_than_a_test_session_may_have(
    alice: ApiUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "MOST_JOBS", 1)
    await a_check(alice, "Home", tags=["shop"])
    await a_check(alice, "Cart")
    refused = await alice.post(TRIGGER, a_trigger())
    started = await alice.post(TRIGGER, a_trigger(targetTags=[["shop"]]))

    assert (refused.status, started.status) == (400, 200)
    assert refused.body["message"] == (
        "2 checks match, and a test session runs 1 at most; choose fewer by their tags or ids."
    )
