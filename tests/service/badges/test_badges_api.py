from dataclasses import replace
from typing import Any

import pytest

from contract.result import Outcome, Status
from tests.builders.check_bodies import check_body
from tests.builders.stored_results import passed, store
from tests.servers.public_api import ApiUser, PublicApi

PATH = "/v1/badges/checks"


async def a_check(user: ApiUser) -> dict[str, Any]:
    check: dict[str, Any] = (await user.post("/v1/checks/url", check_body("url"))).body
    return check


@pytest.mark.parametrize(
    ("outcomes", "word"),
    [
        ([], "no result"),
        ([passed()], "passing"),
        ([Outcome(status=Status.DEGRADED)], "degraded"),
        ([Outcome(status=Status.FAILED)], "failing"),
        ([Outcome(status=Status.TIMED_OUT)], "failing"),
        ([None], "no result"),
    ],
)
async def test_a_badge_tells_the_newest_result(
    api: PublicApi, alice: ApiUser, outcomes: list[Outcome | None], word: str
) -> None:
    check = await a_check(alice)
    for outcome in outcomes:
        await store(api, check, outcome)
    answer = await alice.get(f"{PATH}/{check['id']}")
    assert answer.status == 200
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["cache-control"] == "no-cache"
    assert f"<title>Home: {word}</title>" in answer.body


async def test_a_badge_may_tell_the_response_time(api: PublicApi, alice: ApiUser) -> None:
    check = await a_check(alice)
    await store(api, check, passed(80.9))
    badge = await alice.get(f"{PATH}/{check['id']}?responseTime=true&style=plastic&theme=dark")
    assert "passing 80 ms" in badge.body


async def test_a_badge_of_a_quick_check_does_not_say_that_it_took_no_time(
    api: PublicApi, alice: ApiUser
) -> None:
    check = await a_check(alice)
    await store(api, check, passed(0.4))
    badge = await alice.get(f"{PATH}/{check['id']}?responseTime=true")
    assert "passing &lt;1 ms" in badge.body


async def test_a_groups_badge_is_that_of_its_worst_check(api: PublicApi, alice: ApiUser) -> None:
    group = (await alice.post("/v1/check-groups", {"name": "Shop"})).body
    path = f"/v1/badges/groups/{group['id']}"
    assert "<title>Shop: no result</title>" in (await alice.get(path)).body
    for outcome, word in ((passed(), "passing"), (Outcome(status=Status.FAILED), "failing")):
        body = check_body("url", groupId=group["id"])
        await store(api, (await alice.post("/v1/checks/url", body)).body, outcome)
        assert f"<title>Shop: {word}</title>" in (await alice.get(path)).body
    api.app.state.backend = replace(api.backend, badges_for_anyone=True)
    async with api.http.get(f"{api.url}{path}") as guessed:
        assert guessed.status == 401


@pytest.mark.parametrize("query", ["style=round", "theme=pink", "responseTime=perhaps"])
async def test_a_wrong_look_is_named(alice: ApiUser, query: str) -> None:
    answer = await alice.get(f"{PATH}/x?{query}")
    assert answer.status == 400
    assert answer.body["validation"]["keys"] == [query.partition("=")[0]]


async def test_a_badge_takes_a_key_unless_the_operator_lets_anyone_see_it(
    api: PublicApi, alice: ApiUser, charlie: ApiUser
) -> None:
    check = await a_check(alice)
    address = f"{api.url}{PATH}/{check['id']}"
    async with api.http.get(address) as refused:
        assert refused.status == 401
    api.app.state.backend = replace(api.backend, badges_for_anyone=True)
    async with api.http.get(address) as shown:
        assert shown.status == 200
    async with api.http.get(f"{api.url}{PATH}/nope") as missing:
        assert missing.status == 404
    assert (await charlie.get(f"{PATH}/{check['id']}")).status == 404
