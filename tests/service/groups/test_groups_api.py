"""`/v1/check-groups` and `/v2/check-groups`: what is sent, read, listed and deleted."""

import pytest
from sqlalchemy import func, select

from service.accounts.model import Role
from service.db.tables.checks import check_group_tag
from service.db.tables.job_inputs import variable
from service.vault.texts import HIDDEN
from tests.builders.alert_channels import a_channel
from tests.builders.made_groups import ALERTS, PATHS, TOKEN, a_check, a_group
from tests.servers.public_api import ApiUser, PublicApi


async def test_a_group_of_the_first_form_has_its_defaults(alice: ApiUser) -> None:
    group = await a_group(alice)
    assert {**group, "id": 1, "created_at": ""} == {
        "id": 1,
        "name": "Shop",
        "activated": True,
        "muted": False,
        "tags": [],
        "locations": [],
        "privateLocations": [],
        "concurrency": 3,
        "apiCheckDefaults": {
            "url": "",
            "headers": [],
            "queryParameters": [],
            "assertions": [],
            "basicAuth": None,
        },
        "browserCheckDefaults": "",
        "environmentVariables": [],
        "doubleCheck": True,
        "useGlobalAlertSettings": True,
        "alertSettings": ALERTS,
        "alertChannelSubscriptions": [],
        "setupSnippetId": None,
        "tearDownSnippetId": None,
        "localSetupScript": None,
        "localTearDownScript": None,
        "runtimeId": None,
        "retryStrategy": None,
        "runParallel": False,
        "created_at": "",
        "updated_at": None,
    }


async def test_a_group_of_the_second_form_leaves_to_its_checks_what_is_not_said(
    alice: ApiUser,
) -> None:
    first, second = await a_group(alice), await a_group(alice, PATHS[1])
    assert {name: second[name] for name in second if second[name] != first[name]} == {
        "id": second["id"],
        "created_at": second["created_at"],
        "doubleCheck": False,
        "useGlobalAlertSettings": None,
        "alertSettings": None,
        "runParallel": None,
    }


@pytest.mark.parametrize("path", PATHS)
async def test_what_was_sent_is_read_listed_and_can_be_sent_back(alice: ApiUser, path: str) -> None:
    channel = await a_channel(alice)
    group = await a_group(
        alice,
        path,
        activated=False,
        muted=True,
        tags=["shop", "eu"],
        privateLocations=["default"],
        concurrency=7,
        apiCheckDefaults={
            "url": "https://shop.test",
            "headers": [{"key": "a", "value": "b", "locked": True}],
            "queryParameters": [{"key": "c", "value": "d"}],
            "assertions": [{"source": "STATUS_CODE", "comparison": "EQUALS", "target": "200"}],
            "basicAuth": {"username": "u", "password": "p"},
        },
        browserCheckDefaults="kept",
        runtimeId="2026.04",
        environmentVariables=[{"key": "A", "value": "1"}, TOKEN],
        alertSettings={**ALERTS, "reminders": {"amount": 2, "interval": 10}},
        useGlobalAlertSettings=False,
        alertChannelSubscriptions=[{"alertChannelId": channel, "activated": False}],
        localSetupScript="1",
        localTearDownScript="2",
        runParallel=True,
        retryStrategy={"type": "LINEAR", "baseBackoffSeconds": 3, "sameRegion": False},
    )
    assert group["environmentVariables"][1] == {**TOKEN, "value": ""}
    assert group["alertChannelSubscriptions"] == [{"alertChannelId": channel, "activated": False}]
    assert group["retryStrategy"]["type"] == "LINEAR"
    one = f"/v1/check-groups/{group['id']}"
    assert (await alice.get(one)).body == group
    assert (await alice.get("/v1/check-groups")).body == [group]
    for sent in (group, {}, {"tags": None, "muted": True}):
        again = await alice.put(f"{path}/{group['id']}", sent)
        assert again.status == 200, again.body
        assert {**again.body, "updated_at": None} == group


async def test_lists_are_pages_by_tag_and_part_of_the_name(alice: ApiUser) -> None:
    shop = await a_group(alice, name="The Shop", tags=["a", "b"])
    bank = await a_group(alice, name="The Bank", tags=["b"])

    async def listed(query: str) -> list[int]:
        return [one["id"] for one in (await alice.get(f"/v1/check-groups?{query}")).body]

    assert await listed("") == [shop["id"], bank["id"]]
    assert await listed("tag=a") == [shop["id"]]
    assert await listed("tag=b&name=bank") == [bank["id"]]
    assert await listed("tag=c") == []
    assert await listed("limit=1&page=2") == [bank["id"]]


async def test_what_is_locked_is_hidden_from_keys_that_only_read(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(
        alice,
        apiCheckDefaults={
            "url": "http://shop:s3same@shop.test",
            "headers": [{"key": "a", "value": "b", "locked": True}],
            "basicAuth": {"username": "shop", "password": "s3same"},
        },
        environmentVariables=[{"key": "L", "value": "v", "locked": True}],
    )
    reader = await api.colleague("Rita", role=Role.READ_ONLY)
    seen = (await reader.get(f"/v1/check-groups/{group['id']}")).body
    assert seen["apiCheckDefaults"]["headers"][0]["value"] == HIDDEN
    assert "s3same" not in str(seen)
    assert seen["environmentVariables"][0]["value"] == HIDDEN
    assert group["environmentVariables"][0]["value"] == "v"


async def test_a_group_with_checks_is_not_deleted(api: PublicApi, alice: ApiUser) -> None:
    group = await a_group(alice, tags=["a"], environmentVariables=[TOKEN])
    check = await a_check(alice, group)
    path = f"/v1/check-groups/{group['id']}"
    answer = await alice.delete(path)
    assert answer.status == 409
    assert answer.body["message"] == (
        "The check group Shop has 1 checks (Home); delete them or remove them from it first."
    )
    await alice.delete(f"/v1/checks/{check['id']}")
    assert (await alice.delete(path)).status == 204
    assert (await alice.get(path)).status == 404
    for table in (variable, check_group_tag):
        count = select(func.count()).select_from(table)
        assert await api.database.read(lambda c, q=count: c.execute(q).scalar_one()) == 0


async def test_what_a_group_names_is_not_deleted(alice: ApiUser) -> None:
    snippet = (await alice.post("/v1/snippets", {"name": "login", "script": "1"})).body
    cellar = {"name": "Cellar", "slugName": "cellar"}
    location = (await alice.post("/v1/private-locations", cellar)).body
    await a_group(alice, setupSnippetId=snippet["id"], privateLocations=["cellar"])
    answer = await alice.delete(f"/v1/snippets/{snippet['id']}")
    assert answer.status == 409
    assert "the setup or teardown of the check group Shop" in answer.body["message"]
    answer = await alice.delete(f"/v1/private-locations/{location['id']}")
    assert answer.status == 409
    assert "is one of the check group Shop" in answer.body["message"]
