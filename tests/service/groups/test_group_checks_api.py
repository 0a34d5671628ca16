"""The checks of a group: where they run, how they are listed, what their group changes."""

from typing import Any

import pytest
from sqlalchemy import select, update

from service.checks.fields import MOST_ITEMS
from service.db.tables.checks import check_location, heartbeat, schedule
from tests.builders.check_bodies import check_body
from tests.builders.made_groups import a_check, a_group, changed, row_of
from tests.servers.public_api import ApiUser, PublicApi


async def is_scheduled(api: PublicApi, check: dict[str, Any]) -> bool:
    query = select(schedule).where(schedule.c.check_id == check["id"])
    return await api.database.read(lambda c: c.execute(query).first()) is not None


async def test_a_check_is_made_in_a_group_and_runs_where_its_group_says(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice, privateLocations=["default"])
    check = await a_check(alice, group, privateLocations=[])
    assert (check["groupId"], check["privateLocations"]) == (group["id"], [])
    places = select(check_location.c.location_id)
    assert await api.database.read(lambda c: list(c.execute(places).scalars())) == [
        alice.secrets.location_id
    ]
    nowhere = await a_group(alice)
    body = check_body("url", groupId=nowhere["id"], privateLocations=[])
    assert (await alice.post("/v1/checks/url", body)).status == 400


async def test_checks_move_with_their_group_and_those_with_a_place_of_their_own_stay(
    api: PublicApi, alice: ApiUser
) -> None:
    cellar = (
        await alice.post("/v1/private-locations", {"name": "Cellar", "slugName": "cellar"})
    ).body
    group = await a_group(alice, privateLocations=["default"])
    moves = await a_check(alice, group, privateLocations=[])
    stays = await a_check(alice, group, privateLocations=["default"])
    group = await changed(alice, group, privateLocations=["cellar"], muted=True)
    places = select(check_location.c.check_id, check_location.c.location_id)
    found = await api.database.read(lambda c: dict(map(tuple, c.execute(places))))
    assert found == {moves["id"]: cellar["id"], stays["id"]: alice.secrets.location_id}
    assert [(await row_of(api, one)).muted for one in (moves, stays)] == [True, True]


@pytest.mark.parametrize("group_id", [77, 1 << 62, 1 << 80, -5])
async def test_a_check_in_a_group_that_is_not_there_is_refused(
    alice: ApiUser, group_id: int
) -> None:
    answer = await alice.post("/v1/checks/url", check_body("url", groupId=group_id))
    assert answer.status == 400
    assert answer.body["message"] == (
        f'"groupId" is {group_id}, and there is no check group with this id.'
    )


async def test_nobody_puts_checks_into_a_strangers_group(alice: ApiUser, charlie: ApiUser) -> None:
    group = await a_group(alice)
    body = check_body("url", groupId=group["id"])
    assert (await charlie.post("/v1/checks/url", body)).status == 400


async def test_the_checks_of_a_group_are_listed_in_its_order_with_its_settings(
    alice: ApiUser,
) -> None:
    group = await a_group(alice, tags=["shop"], muted=True, retryStrategy={"type": "FIXED"})
    none = await a_check(alice, group, name="no order")
    last = await a_check(alice, group, name="last", groupOrder=10)
    first = await a_check(alice, group, name="first", groupOrder=2)
    path = f"/v1/check-groups/{group['id']}/checks"
    listed = (await alice.get(path)).body
    assert [one["id"] for one in listed] == [first["id"], last["id"], none["id"]]
    assert (await alice.get(f"{path}?limit=1&page=2")).body == [listed[1]]
    assert listed[0]["tags"] == ["shop"]
    assert (listed[0]["muted"], listed[0]["retryStrategy"]["type"]) == (True, "FIXED")
    assert (await alice.get(f"{path}/{first['id']}")).body == listed[0]
    assert (await alice.get(f"/v1/checks/{first['id']}")).body == first
    applied = f"/v1/checks/{first['id']}?applyGroupSettings=true"
    assert (await alice.get(applied)).body == listed[0]
    every = (await alice.get("/v1/checks?applyGroupSettings=true")).body
    assert sorted(one["id"] for one in every) == sorted(one["id"] for one in listed)
    assert all(one["muted"] for one in every)


async def test_a_check_of_another_group_is_not_in_this_one(alice: ApiUser) -> None:
    group, other = await a_group(alice), await a_group(alice)
    check = await a_check(alice, other)
    answer = await alice.get(f"/v1/check-groups/{group['id']}/checks/{check['id']}")
    assert answer.status == 404
    assert (await alice.get("/v1/check-groups/999/checks")).status == 404


async def test_a_group_that_is_paused_pauses_its_checks_and_back(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice)
    check = await a_check(alice, group)
    paused = await a_check(alice, group, activated=False)
    group = await changed(alice, group, activated=False)
    assert not await is_scheduled(api, check)
    assert (await alice.get(f"/v1/checks/{check['id']}")).body["activated"] is True
    target = {"target": {"checkId": [check["id"]]}}
    assert (await alice.post("/v1/check-sessions/trigger", target)).status == 404
    await changed(alice, group, activated=True)
    assert await is_scheduled(api, check)
    assert not await is_scheduled(api, paused)


async def test_a_check_that_joins_or_leaves_a_group_goes_by_its_settings_or_no_more(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice, activated=False, runParallel=True)
    check = (await alice.post("/v1/checks/url", check_body())).body
    path = f"/v1/checks/url/{check['id']}"
    assert (await alice.put(path, {**check, "groupId": group["id"]})).status == 200
    row = await row_of(api, check)
    assert (row.activated, row.run_parallel, row.group_id) == (False, True, group["id"])
    assert not await is_scheduled(api, check)
    assert (await alice.put(path, {**check, "groupId": None})).status == 200
    row = await row_of(api, check)
    assert (row.activated, row.run_parallel, row.group_id, row.applied) == (
        True,
        False,
        None,
        None,
    )
    assert await is_scheduled(api, check)


async def test_a_group_that_a_check_could_not_run_in_is_refused(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice, privateLocations=["default"])
    check = await a_check(alice, group, privateLocations=[])
    path = f"/v1/check-groups/{group['id']}"
    answer = await alice.put(path, {**group, "privateLocations": []})
    assert answer.status == 400
    assert answer.body["message"] == (
        "The check Home could not run like this:"
        " You have to set at least one `location` or `privateLocation`"
    )
    assert (await alice.get(path)).body == group
    assert await is_scheduled(api, check)
    await a_check(alice, group, "browser")
    answer = await alice.put(path, {**group, "runtimeId": "2022.10"})
    assert answer.status == 400
    assert answer.body["validation"]["keys"] == ["runtimeId"]


async def test_a_heartbeat_keeps_its_token_and_starts_over_when_its_group_is_activated(
    api: PublicApi, alice: ApiUser
) -> None:
    group = await a_group(alice, activated=False)
    check = await a_check(alice, group, "heartbeat")
    since = update(heartbeat).values(last_ping_ms=5, timer_started_ms=5)
    await api.database.write(lambda c: c.execute(since))
    group = await changed(alice, group, name="Other")
    last = select(heartbeat.c.last_ping_ms)
    assert await api.database.read(lambda c: c.execute(last).scalar_one()) == 5
    await changed(alice, group, activated=True)
    assert await api.database.read(lambda c: c.execute(last).scalar_one()) is None
    seen = (await alice.get(f"/v1/checks/{check['id']}")).body
    assert seen["heartbeat"]["pingToken"] == check["heartbeat"]["pingToken"]


def so_many(kind: str) -> dict[str, Any]:
    """As many of all that a group adds to its checks as can be written."""
    numbers = range(MOST_ITEMS)
    pairs = [{"key": f"{kind}-{number}", "value": "x"} for number in numbers]
    is_good = {"source": "STATUS_CODE", "comparison": "EQUALS", "target": "200"}
    return {"headers": pairs, "queryParameters": pairs, "assertions": [is_good for _ in numbers]}


def lengths(body: dict[str, Any], document: dict[str, Any]) -> list[tuple[str, int, int]]:
    """Of each list that a group adds to: name, length, and the length that the document allows."""
    schemas = document["components"]["schemas"]
    shown = schemas["ApiCheckShown"]["properties"]
    request = schemas[shown["request"]["$ref"].rsplit("/", 1)[-1]]["properties"]
    lists = {"tags": (body["tags"], shown["tags"])}
    for name in ("headers", "queryParameters", "assertions"):
        lists[name] = (body["request"][name], request[name])
    return [
        (name, len(items), schema["anyOf"][0]["maxItems"])
        for name, (items, schema) in lists.items()
    ]


async def test_a_check_with_all_that_its_group_adds_fits_the_document(alice: ApiUser) -> None:
    tags = [[f"{kind}-{number}" for number in range(MOST_ITEMS)] for kind in ("shop", "check")]
    group = await a_group(alice, tags=tags[0], apiCheckDefaults=so_many("group"))
    request = {"url": "http://shop.test", **so_many("check")}
    check = await a_check(alice, group, "api", tags=tags[1], request=request)
    applied = (await alice.get(f"/v1/checks/{check['id']}?applyGroupSettings=true")).body
    document = (await alice.get("/openapi.json")).body
    for name, length, most in lengths(applied, document):
        assert (name, length, most) == (name, 2 * MOST_ITEMS, 2 * MOST_ITEMS)
